package releasecheck_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const manifestText = `{"version": 1, "metadata": {"protocol_versions": ["6.0"]}}`

func TestARegistryTakesWhatIsComplete(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"zipinfo", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	for name, c := range map[string]struct {
		change func(r *made)
		want   string // "" for none
	}{
		"complete":                {func(*made) {}, ""},
		"no archive":              {func(r *made) { delete(r.archives, "linux_amd64") }, "linux_amd64.zip"},
		"another archive":         {func(r *made) { r.archives["plan9_386"] = r.archives["linux_amd64"] }, "has to have checksums of"},
		"no .exe":                 {func(r *made) { r.archives["windows_amd64"] = r.archives["linux_amd64"] }, "has to have terraform-provider-flotilla_v1.2.3.exe and LICENSE"},
		"not executable":          {func(r *made) { r.archives["linux_amd64"]["terraform-provider-flotilla_v1.2.3"] = 0o644 }, "-rw-r--r-- 1 terraform-provider-flotilla_v1.2.3"},
		"another name":            {func(r *made) { r.archives["linux_amd64"] = archive{"flotilla": 0o755, "LICENSE": 0o644} }, "-rwxr-xr-x 1 flotilla"},
		"no licence":              {func(r *made) { delete(r.archives["linux_amd64"], "LICENSE") }, "has to have"},
		"another checksum":        {func(r *made) { r.sum = strings.Repeat("0", 64) }, "FAILED"},
		"no checksum":             {func(r *made) { r.sum = "x" }, "improperly formatted"},
		"the manifest is missing": {func(r *made) { r.manifest = "" }, "has to have checksums of"},
		"another protocol":        {func(r *made) { r.manifest = strings.ReplaceAll(manifestText, "6.0", "5.0") }, "is not of version 1 with the protocol 6.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &made{manifest: manifestText, archives: map[string]archive{
				"linux_amd64":   {"terraform-provider-flotilla_v1.2.3": 0o755, "LICENSE": 0o644},
				"windows_amd64": {"terraform-provider-flotilla_v1.2.3.exe": 0o755, "LICENSE": 0o644},
			}}
			c.change(r)
			folder, manifest := r.write(t)
			said, err := exec.Command("./check.sh", folder, manifest, "linux_amd64", "windows_amd64").CombinedOutput()
			if (err == nil) != (c.want == "") || !strings.Contains(string(said), c.want) {
				t.Errorf("it says %s, and not %q", said, c.want)
			}
		})
	}
}

// archive is what is in an archive: modes by name.
type archive map[string]fs.FileMode

// made is a release of version 1.2.3 to write.
type made struct {
	archives map[string]archive // by platform
	manifest string             // "" for none among the checksums
	sum      string             // of linux_amd64, "" for the right one
}

func (r *made) write(t *testing.T) (folder, manifest string) {
	t.Helper()
	folder = t.TempDir()
	var sums strings.Builder
	for platform, files := range r.archives {
		var content bytes.Buffer
		w := zip.NewWriter(&content)
		for name, mode := range files {
			header := &zip.FileHeader{Name: name}
			header.SetMode(mode)
			file, err := w.CreateHeader(header)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(file, "program")
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		name := "terraform-provider-flotilla_1.2.3_" + platform + ".zip"
		write(t, filepath.Join(folder, name), content.String())
		sum := fmt.Sprintf("%x", sha256.Sum256(content.Bytes()))
		if platform == "linux_amd64" && r.sum != "" {
			sum = r.sum
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, name)
	}
	manifest = filepath.Join(t.TempDir(), "manifest.json")
	write(t, manifest, r.manifest)
	if r.manifest == "" {
		write(t, manifest, manifestText)
	} else {
		fmt.Fprintf(&sums, "%x  terraform-provider-flotilla_1.2.3_manifest.json\n", sha256.Sum256([]byte(r.manifest)))
	}
	write(t, filepath.Join(folder, "terraform-provider-flotilla_1.2.3_SHA256SUMS"), sums.String())
	return folder, manifest
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
