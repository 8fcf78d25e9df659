package origin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

type entry struct {
	kind           byte
	name, linkname string
	content        string
}

func archiveOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	writer := tar.NewWriter(compressed)
	for _, e := range entries {
		if err := writer.WriteHeader(&tar.Header{Typeflag: e.kind, Name: e.name, Linkname: e.linkname, Size: int64(len(e.content)), Mode: 0o755}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(writer, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(writer.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestWrittenArchiveIsCanonical(t *testing.T) {
	t.Parallel()
	read, err := readArchive(archiveOf(t,
		entry{kind: tar.TypeDir, name: "./"}, entry{kind: tar.TypeDir, name: "b/"}, entry{kind: tar.TypeReg, name: "./b/c", content: "2"},
		entry{kind: tar.TypeReg, name: "a", content: "1"}, entry{kind: tar.TypeSymlink, name: "b/d", linkname: "../a"},
	))
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	if err := artifact.WriteArchive(&written, read.regular, read.links); err != nil {
		t.Fatal(err)
	}
	var names []string
	reader := tar.NewReader(&written)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, _ := io.ReadAll(reader)
		names = append(names, header.Name+" "+header.Linkname+string(content))
	}
	if got := strings.Join(names, ", "); got != "a 1, b/c 2, b/d ../a" {
		t.Errorf("got entries %s", got)
	}
}

func TestHostileArchivesAreErrors(t *testing.T) {
	t.Parallel()
	file := func(name string) entry { return entry{kind: tar.TypeReg, name: name, content: "x"} }
	link := func(name, to string) entry { return entry{kind: tar.TypeSymlink, name: name, linkname: to} }
	for name, test := range map[string]struct {
		entries []entry
		want    string
	}{
		"absolute":               {[]entry{file("/etc/passwd")}, "leads out"},
		"up":                     {[]entry{file("a/../../b")}, "leads out"},
		"up within":              {[]entry{file("a/../b")}, "leads out"},
		"backslash":              {[]entry{file(`..\b`)}, "leads out"},
		"root":                   {[]entry{file(".")}, "in place of its root"},
		"twice":                  {[]entry{file("a"), file("./a")}, "twice"},
		"file and folder":        {[]entry{file("a"), file("a/b")}, "no folder"},
		"folder and file":        {[]entry{file("a/b"), file("a")}, "twice"},
		"through a link":         {[]entry{link("a", "b"), file("a/c")}, "no folder"},
		"a folder over a link":   {[]entry{link("a", "b"), {kind: tar.TypeDir, name: "a/"}}, "twice"},
		"absolute link":          {[]entry{link("a", "/etc")}, "leads out"},
		"link up":                {[]entry{link("a/b", "../../c")}, "leads out"},
		"link through a link":    {[]entry{link("d/e/l", "../.."), link("a", "d/e/l/../x")}, "leads out"},
		"hard link":              {[]entry{{kind: tar.TypeLink, name: "a", linkname: "b"}}, "neither a file"},
		"device":                 {[]entry{{kind: tar.TypeChar, name: "a"}}, "neither a file"},
		"pipe":                   {[]entry{{kind: tar.TypeFifo, name: "a"}}, "neither a file"},
		"a path of many folders": {[]entry{file(strings.Repeat("a/", 101) + "b")}, "folders"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := readArchive(archiveOf(t, test.entries...)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	for name, content := range map[string][]byte{"empty": nil, "no gzip": []byte("hello"), "cut": archiveOf(t, file("a"))[:30]} {
		if _, err := readArchive(content); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestArchiveBombIsAnError(t *testing.T) {
	t.Parallel()
	var buffer bytes.Buffer
	compressed, _ := gzip.NewWriterLevel(&buffer, gzip.BestSpeed)
	writer := tar.NewWriter(compressed)
	zeros := make([]byte, 1<<20)
	for i := range 2 {
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("a", i+1), Size: 65 << 20}); err != nil {
			t.Fatal(err)
		}
		for range 65 {
			if _, err := writer.Write(zeros); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(writer.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := readArchive(buffer.Bytes()); !errors.Is(err, git.ErrTooLarge) {
		t.Errorf("130 MiB in %d bytes: %v", buffer.Len(), err)
	}
	many := newFiles()
	for i := range maxFiles {
		many.regular[strings.Repeat("a", 1+i%10)+string(rune(i+300))] = nil
	}
	if err := many.add("b", nil); len(many.regular) == maxFiles && !errors.Is(err, git.ErrTooLarge) {
		t.Errorf("one file more than %d: %v", maxFiles, err)
	}
}

func FuzzReadArchive(f *testing.F) {
	f.Add(archiveOf(f, entry{kind: tar.TypeReg, name: "a/b", content: "x"}, entry{kind: tar.TypeSymlink, name: "a/c", linkname: "b"}))
	f.Add(archiveOf(f, entry{kind: tar.TypeReg, name: "../b", content: "x"}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		read, err := readArchive(archive)
		if err != nil {
			return
		}
		var first, second bytes.Buffer
		if err := artifact.WriteArchive(&first, read.regular, read.links); err != nil {
			return // tar cannot write the name
		}
		var compressed bytes.Buffer
		writer := gzip.NewWriter(&compressed)
		_, _ = writer.Write(first.Bytes())
		_ = writer.Close()
		again, err := readArchive(compressed.Bytes())
		if err != nil {
			t.Fatalf("the written archive is refused: %v", err)
		}
		if err := artifact.WriteArchive(&second, again.regular, again.links); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("the second archive differs: %v", err)
		}
	})
}

func TestFindNewestReturnsTheGreatestVersionInRange(t *testing.T) {
	t.Parallel()
	tags := []string{"1.2.3", "v1.10.0", "1.9.0", "2.0.0-rc.1", "2024", "latest", "1.10.0_build.1", "3", ""}
	for within, want := range map[string]string{
		"": "v1.10.0", "*": "v1.10.0", "<1.9": "1.2.3", "1.2": "1.2.3", ">=2.0.0-0": "2.0.0-rc.1", "^1": "v1.10.0", ">5": "",
	} {
		if got, err := findNewest(tags, within); err != nil || got != want {
			t.Errorf("newest in %q: %q, %v; want %q", within, got, err, want)
		}
	}
	if _, err := findNewest(nil, "newest"); err == nil || !strings.Contains(err.Error(), `"newest" is neither`) {
		t.Errorf("error %v", err)
	}
}
