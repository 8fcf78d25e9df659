package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

func TestGitReadsPacksAndPacksOfGitAreRead(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	git := func(stdin []byte, args ...string) string {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir, command.Stdin = directory, bytes.NewReader(stdin)
		output, err := command.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(output)
	}
	git(nil, "init", "--quiet", "--bare")
	writer := NewPack()
	want := map[Hash][]byte{}
	var workers sync.WaitGroup
	for i := range 200 {
		content := []byte(strings.Repeat(fmt.Sprintf("line %d\n", i/50), i*7))
		if i%20 == 0 { // enough to fill parts of the pack
			content = make([]byte, 300<<10)
			_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(content)
		}
		id := NewHasher().object(plumbing.BlobObject, content)
		for range 2 {
			workers.Go(func() { writer.add(id, plumbing.BlobObject, content) })
		}
		want[id] = content
	}
	workers.Wait()
	pack, err := io.ReadAll(writer.Reader())
	if err != nil || len(pack) != writer.Finish() {
		t.Fatalf("%d bytes of %d, %v", len(pack), writer.Finish(), err)
	}
	git(pack, "index-pack", "--strict", "--stdin")

	// Packs of git have deltas by offset and by id.
	var ids []string
	for id := range want {
		ids = append(ids, id.String())
	}
	for _, args := range [][]string{
		{"pack-objects", "--stdout", "--no-reuse-delta"},
		{"pack-objects", "--stdout", "--no-reuse-delta", "--delta-base-offset", "--depth=200", "--window=50"},
	} {
		theirs := git([]byte(strings.Join(ids, "\n")+"\n"), args...)
		objects := map[Hash]RawObject{}
		if err := ReadPack(strings.NewReader(theirs), objects); err != nil {
			t.Fatal(err)
		}
		for id, content := range want {
			if !bytes.Equal(objects[id].Content, content) {
				t.Errorf("object %s differs", id)
			}
		}
	}
}

// rawPack returns a pack of entries made by rawEntry.
func rawPack(count uint32, entries ...[]byte) []byte {
	var b bytes.Buffer
	b.WriteString("PACK\x00\x00\x00\x02")
	_ = binary.Write(&b, binary.BigEndian, count)
	for _, e := range entries {
		b.Write(e)
	}
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	return b.Bytes()
}

func rawEntry(kind plumbing.ObjectType, size uint64, base []byte, content []byte) []byte {
	var b bytes.Buffer
	c := byte(kind)<<4 | byte(size&0xf)
	for size >>= 4; size > 0; size >>= 7 {
		b.WriteByte(c | 0x80)
		c = byte(size & 0x7f)
	}
	b.WriteByte(c)
	b.Write(base)
	z := zlib.NewWriter(&b)
	_, _ = z.Write(content)
	_ = z.Close()
	return b.Bytes()
}

func TestHostilePacksCostNoMemory(t *testing.T) {
	bomb := make([]byte, acceptancetest.Count(12, 64)<<20)
	base := []byte("base")
	baseID := NewHasher().object(plumbing.BlobObject, base)
	// A delta that announces 1 TiB.
	huge := append(binary.AppendUvarint(binary.AppendUvarint(nil, 4), 1<<40), 0x90, 4)
	for name, pack := range map[string][]byte{
		"a billion objects announced":  rawPack(1 << 30),
		"an object of 1 TiB announced": rawPack(1, rawEntry(plumbing.BlobObject, 1<<40, nil, base)),
		"an object of 2^63":            rawPack(1, rawEntry(plumbing.BlobObject, 1<<62, nil, base)),
		"longer than announced":        rawPack(1, rawEntry(plumbing.BlobObject, 3, nil, bomb)),
		"shorter than announced":       rawPack(1, rawEntry(plumbing.BlobObject, 5, nil, base)),
		"a delta of 1 TiB":             rawPack(2, rawEntry(plumbing.BlobObject, 4, nil, base), rawEntry(plumbing.REFDeltaObject, uint64(len(huge)), baseID[:], huge)),
		"a delta without a base":       rawPack(1, rawEntry(plumbing.REFDeltaObject, 4, make([]byte, 20), base)),
		"a delta upon itself":          rawPack(1, rawEntry(plumbing.OFSDeltaObject, 4, []byte{0}, base)),
		"no pack":                      []byte("PACK"),
		"nothing":                      nil,
		"an unknown type":              rawPack(1, rawEntry(5, 4, nil, base)),
		"a wrong checksum":             append(rawPack(1, rawEntry(plumbing.BlobObject, 4, nil, base))[:30], make([]byte, 20)...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := ReadPack(bytes.NewReader(pack), map[Hash]RawObject{})
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
			t.Errorf("%s: %d MiB were allocated", name, used>>20)
		}
	}
	pack := rawPack(2, rawEntry(plumbing.BlobObject, uint64(len(bomb)), nil, bomb), rawEntry(plumbing.BlobObject, 4, nil, base))
	if err := readPackWithin(int64(len(bomb)), bytes.NewReader(pack), map[Hash]RawObject{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a pack that unpacks to more than the limit: %v", err)
	}
}

func TestServerDataIsBounded(t *testing.T) {
	t.Parallel()
	if err := ReadPack(bytes.NewReader(rawPack(maxPackObjects+1)), map[Hash]RawObject{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many objects: %v", err)
	}
	const limit = 1 << 20
	for _, size := range []int{limit, limit + 1} {
		r := limited(bytes.NewReader(make([]byte, size)), limit)
		if _, err := io.Copy(io.Discard, r); errors.Is(err, ErrTooLarge) != (size > limit) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	endless := roundTripFunc(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(zeros{}), Request: r}, nil
	})
	for path, want := range map[string]int64{
		"/r/info/refs": maxAdvertisement, "/r/git-receive-pack": maxReport, "/r/git-upload-pack": maxPackBytes,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://h"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&boundedTransport{next: endless, remote: Remote{URL: "http://h/r"}}).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if !errors.Is(err, ErrTooLarge) || n < want || n > want+(1<<20) {
			t.Errorf("%s: %d bytes, %v", path, n, err)
		}
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func FuzzReadPack(f *testing.F) {
	base := []byte("base")
	baseID := NewHasher().object(plumbing.BlobObject, base)
	f.Add(rawPack(1, rawEntry(plumbing.BlobObject, 4, nil, base)))
	f.Add(rawPack(2, rawEntry(plumbing.BlobObject, 4, nil, base), rawEntry(plumbing.REFDeltaObject, 4, baseID[:], []byte{4, 4, 0x90, 4})))
	f.Add(rawPack(2, rawEntry(plumbing.BlobObject, 4, nil, base), rawEntry(plumbing.OFSDeltaObject, 4, []byte{13}, []byte{4, 4, 0x90, 4})))
	f.Fuzz(func(t *testing.T, pack []byte) {
		objects := map[Hash]RawObject{}
		if ReadPack(bytes.NewReader(pack), objects) != nil {
			return
		}
		for id, o := range objects {
			if NewHasher().object(o.Kind, o.Content) != id {
				t.Fatal("an object under a wrong id")
			}
		}
	})
}

func FuzzParseTree(f *testing.F) {
	id := strings.Repeat("x", 20)
	f.Add([]byte("100644 a\x00" + id + "40000 b\x00" + id))
	f.Add([]byte("100664 a.b\x00" + id + "40000 a\x00" + id + "120000 a0\x00" + id))
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, err := ParseTree(content)
		if err != nil {
			return
		}
		if got := encodeTree(entries); !bytes.Equal(got, content) {
			t.Fatalf("ParseTree(%q) is written as %q", content, got)
		}
		d := &Directory{entries: entries, loaded: true}
		names := map[string]bool{}
		for _, e := range entries {
			if e.Name != path.Base(e.Name) || e.Name == "." || e.Name == ".." || strings.ToLower(e.Name) == ".git" {
				t.Fatalf("%q is accepted", e.Name)
			}
			if names[e.Name] {
				t.Fatalf("%q is there twice in %q", e.Name, content)
			}
			names[e.Name] = true
			if found, ok := d.Find(e.Name); !ok || found.Name != e.Name {
				t.Fatalf("%q is not found", e.Name)
			}
		}
	})
}

func TestATreeWithANameThatLeadsElsewhereIsMalformed(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("x", 20)
	for name, accepted := range map[string]bool{
		"": false, ".": false, "..": false, ".git": false, ".GIT": false, "a/b": false, "/": false,
		"...": true, ".gitignore": true, ".github": true, "a\x1b[2J": true, `a\b`: true, " ": true, "\xff": true,
	} {
		for _, mode := range []string{"100644 ", "40000 "} {
			if _, err := ParseTree([]byte(mode + name + "\x00" + id)); (err == nil) != accepted {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

func TestATreeThatNamesAnEntryTwiceIsMalformed(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("x", 20)
	for _, entries := range [][]string{
		{"100644 a", "100644 a"}, {"100644 a", "40000 a"}, {"120000 a", "100644 a.b", "40000 a"}, {"100644 a", "40000 a-b", "100644 a.b", "40000 a"},
	} {
		if _, err := ParseTree([]byte(strings.Join(entries, "\x00"+id) + "\x00" + id)); err == nil {
			t.Errorf("%q is accepted", entries)
		}
	}
	for _, entries := range [][]string{{"100644 a", "40000 aa"}, {"100644 a.b", "40000 a"}, {"100644 a", "40000 a-b", "100644 a.b", "40000 b"}} {
		if _, err := ParseTree([]byte(strings.Join(entries, "\x00"+id) + "\x00" + id)); err != nil {
			t.Errorf("%q: %v", entries, err)
		}
	}
}

func FuzzParseCommitHead(f *testing.F) {
	first := NewCommit{
		Tree:    BlobID([]byte("tree")),
		Author:  Signature{Name: "a", Email: "a@b.c"},
		Time:    time.Unix(1_700_000_000, 0).UTC(),
		Message: "committer x <> 1",
	}
	f.Add(first.encode())
	first.Parents = []Hash{BlobID([]byte("a")), BlobID([]byte("b"))}
	f.Add(first.encode())
	f.Add([]byte("tree " + first.Tree.String()))
	f.Fuzz(func(t *testing.T, content []byte) {
		head, err := ParseCommitHead(content)
		if err != nil {
			return
		}
		written := NewCommit{Tree: head.Tree, Parents: head.Parents, Time: head.Time, Author: first.Author}.encode()
		again, err := ParseCommitHead(written)
		if err != nil || again.Tree != head.Tree || !slices.Equal(again.Parents, head.Parents) || !again.Time.Equal(head.Time) {
			t.Fatalf("%q is read as %v, and that, written, as %v: %v", content, head, again, err)
		}
	})
}
