package artifact

import (
	"archive/tar"
	"io"
	"maps"
	"slices"
)

// WriteArchive writes files and symbolic links as the tar archive of a [Fetcher]. Equal content gives equal bytes.
func WriteArchive[T string | []byte](to io.Writer, files map[string]T, links map[string]string) error {
	writer := tar.NewWriter(to)
	names := slices.AppendSeq(slices.Collect(maps.Keys(files)), maps.Keys(links))
	slices.Sort(names)
	for _, name := range names {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: 0o644}
		if target, isLink := links[name]; isLink {
			header = &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}
		}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		if _, err := writer.Write([]byte(files[name])); err != nil {
			return err
		}
	}
	return writer.Close()
}
