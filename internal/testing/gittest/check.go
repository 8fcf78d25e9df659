package gittest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// Check finds missing, misnamed and malformed objects of a bare repository, as `git fsck --strict` does, without processes.
func Check(folder string) error {
	l := &local{directory: folder}
	objects := map[git.Hash]git.RawObject{}
	problems := l.readAll(objects)
	for id, o := range objects {
		links, err := checkObject(o)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %s: %w", o.Kind, id, err))
		}
		for linked, kind := range links {
			if objects[linked].Kind != kind {
				problems = append(problems, fmt.Errorf("%s %s: missing %s %s", o.Kind, id, kind, linked))
			}
		}
	}
	references, err := l.readReferences()
	problems = append(problems, err)
	for name, id := range references {
		if kind := objects[id].Kind; kind == plumbing.InvalidObject || strings.HasPrefix(name, "refs/heads/") && kind != plumbing.CommitObject {
			problems = append(problems, fmt.Errorf("%s: missing %s", name, id))
		}
	}
	return errors.Join(problems...)
}

func (l *local) readAll(into map[git.Hash]git.RawObject) []error {
	var problems []error
	folder := filepath.Join(l.directory, "objects")
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if strings.HasSuffix(file, ".pack") {
			pack, err := contents.readPack(file)
			maps.Copy(into, pack)
			return err
		}
		id := strings.ReplaceAll(strings.TrimPrefix(file, folder), string(filepath.Separator), "")
		if !plumbing.IsHash(id) {
			return nil
		}
		compressed, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		o, err := parseLoose(compressed)
		if computed := plumbing.ComputeHash(o.Kind, o.Content); err == nil && computed.String() != id {
			err = fmt.Errorf("hash mismatch: %s", computed)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", file, err))
		}
		into[plumbing.NewHash(id)] = o
		return nil
	})
	return append(problems, err)
}

var (
	person       = `[^<>\n]+ <[^<>\n]*> (0|[1-9][0-9]*) [+-][0-9]{4}\n`
	commitFormat = regexp.MustCompile(`\Atree [0-9a-f]{40}\n(parent [0-9a-f]{40}\n)*author ` + person + `committer ` + person +
		`([a-z0-9-]+ .*\n( .*\n)*)*\n`)
	tagFormat = regexp.MustCompile(`\Aobject [0-9a-f]{40}\ntype (commit|tree|blob|tag)\ntag .+\ntagger ` + person)
)

// checkObject returns the objects that another contains, with their types.
func checkObject(o git.RawObject) (map[git.Hash]plumbing.ObjectType, error) {
	links := map[git.Hash]plumbing.ObjectType{}
	switch o.Kind {
	case plumbing.BlobObject:
	case plumbing.TreeObject:
		return checkTree(string(o.Content))
	case plumbing.CommitObject:
		header := commitFormat.FindString(string(o.Content))
		if header == "" {
			return nil, errors.New("malformed")
		}
		for line := range strings.Lines(header) {
			switch name, id, _ := strings.Cut(strings.TrimSpace(line), " "); name {
			case "tree":
				links[plumbing.NewHash(id)] = plumbing.TreeObject
			case "parent":
				links[plumbing.NewHash(id)] = plumbing.CommitObject
			}
		}
	case plumbing.TagObject:
		fields := strings.Fields(tagFormat.FindString(string(o.Content)))
		if len(fields) == 0 {
			return nil, errors.New("malformed")
		}
		kind, err := plumbing.ParseObjectType(fields[3])
		links[plumbing.NewHash(fields[1])] = kind
		return links, err
	default:
		return nil, errors.New("unknown type")
	}
	return links, nil
}

// checkTree does not use the product's parser, which it checks.
func checkTree(rest string) (map[git.Hash]plumbing.ObjectType, error) {
	links, names, last := map[git.Hash]plumbing.ObjectType{}, map[string]bool{}, ""
	for rest != "" {
		header, after, _ := strings.Cut(rest, "\x00")
		mode, name, _ := strings.Cut(header, " ")
		if len(after) < 20 {
			return links, errors.New("truncated")
		}
		id := git.Hash([]byte(after[:20]))
		rest = after[20:]
		key := name
		switch mode {
		case "40000":
			key += "/"
			links[id] = plumbing.TreeObject
		case "100644", "100755", "120000":
			links[id] = plumbing.BlobObject
		case "160000":
		default:
			return links, fmt.Errorf("%q has mode %q", name, mode)
		}
		switch lower := strings.ToLower(name); {
		case name == "" || strings.Contains(name, "/") || lower == "." || lower == ".." || lower == ".git":
			return links, fmt.Errorf("an entry is named %q", name)
		case names[name]:
			return links, fmt.Errorf("%q is there twice", name)
		case key <= last:
			return links, fmt.Errorf("%q is not sorted", name)
		}
		names[name], last = true, key
	}
	return links, nil
}
