package gittest

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// contents caches objects and packs of all repositories by hash.
var contents = keptContents{loose: map[git.Hash]git.RawObject{}, packs: map[string]map[git.Hash]git.RawObject{}}

type keptContents struct {
	mu    sync.Mutex
	loose map[git.Hash]git.RawObject
	packs map[string]map[git.Hash]git.RawObject // by file name
	size  int                                   // bytes
}

// maxKept is in bytes.
const maxKept = 256 << 20

func (k *keptContents) keep(size int) {
	if k.size += size; k.size > maxKept {
		clear(k.loose)
		clear(k.packs)
		k.size = size
	}
}

func (k *keptContents) readLoose(id git.Hash, file string) (git.RawObject, error) {
	k.mu.Lock()
	o, isKept := k.loose[id]
	k.mu.Unlock()
	if isKept {
		_, err := os.Stat(file)
		return o, err
	}
	compressed, err := os.ReadFile(file)
	if err != nil {
		return git.RawObject{}, err
	}
	if o, err = parseLoose(compressed); err != nil {
		return git.RawObject{}, fmt.Errorf("%s: %w", file, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keep(len(o.Content))
	k.loose[id] = o
	return o, nil
}

func parseLoose(compressed []byte) (git.RawObject, error) {
	r, err := zlib.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return git.RawObject{}, err
	}
	defer r.Close()
	buffered := bufio.NewReader(r)
	header, err := buffered.ReadString(0)
	if err != nil {
		return git.RawObject{}, err
	}
	name, _, _ := strings.Cut(header, " ")
	kind, err := plumbing.ParseObjectType(name)
	if err != nil {
		return git.RawObject{}, err
	}
	content, err := io.ReadAll(buffered)
	return git.RawObject{Kind: kind, Content: content}, err
}

// readPacks skips packs that git is removing.
func (k *keptContents) readPacks(folder string) []map[git.Hash]git.RawObject {
	files, _ := filepath.Glob(filepath.Join(folder, "*.idx"))
	packs := make([]map[git.Hash]git.RawObject, 0, len(files))
	for _, file := range files {
		if pack, err := k.readPack(strings.TrimSuffix(file, ".idx") + ".pack"); err == nil {
			packs = append(packs, pack)
		}
	}
	return packs
}

func (k *keptContents) readPack(file string) (map[git.Hash]git.RawObject, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	name := filepath.Base(file)
	if pack, ok := k.packs[name]; ok {
		return pack, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pack := map[git.Hash]git.RawObject{}
	if err := git.ReadPack(bytes.NewReader(content), pack); err != nil {
		return nil, errors.Join(errors.New(file), err)
	}
	size := 0
	for _, o := range pack {
		size += len(o.Content)
	}
	k.keep(size)
	k.packs[name] = pack
	return pack, nil
}
