// Package published embeds the schemas and definitions that tools/schemas writes.
package published

import (
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"sync"
)

//go:embed sources.json kubernetes.json.gz */*.json.gz
var files embed.FS

// Modules returns the modules with their versions, by API group.
var Modules = sync.OnceValue(func() map[string]string {
	text, err := files.ReadFile("sources.json")
	var modules map[string]string
	if err == nil {
		err = json.Unmarshal(text, &modules)
	}
	if err != nil {
		panic(err) // the file is embedded
	}
	return modules
})

// ReadKubernetes decodes the schemas of Kubernetes' kinds.
func ReadKubernetes(into any) error { return read("kubernetes.json.gz", into) }

// ReadDefinition decodes a CustomResourceDefinition. Its error is [fs.ErrNotExist] if the kind has none.
func ReadDefinition(group, kind string, into any) error {
	return read(group+"/"+kind+".json.gz", into)
}

func read(path string, into any) error {
	file, err := files.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	reader, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// Definitions returns the definitions of groups as JSON, by module.
func Definitions(isWanted func(group string) bool) (map[string][][]byte, error) {
	all := map[string][][]byte{}
	for group, module := range Modules() {
		if !isWanted(group) {
			continue
		}
		paths, err := fs.Glob(files, group+"/*.json.gz")
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			var text json.RawMessage
			if err := read(path, &text); err != nil {
				return nil, err
			}
			all[module] = append(all[module], text)
		}
	}
	return all, nil
}

// Version changes with the files.
var Version = sync.OnceValue(func() string {
	all := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		panic(err) // likewise
	}
	return hex.EncodeToString(all.Sum(nil))
})
