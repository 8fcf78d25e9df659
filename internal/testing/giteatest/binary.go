package giteatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

const giteaModule = "code.gitea.io/gitea"

// gitea returns the Gitea binary, built from tools/gitea unless it is up to date, and the module's folder with the templates
// and other assets.
func gitea(ctx context.Context) (binary, assets string, err error) {
	root, err := processtest.Repository()
	if err != nil {
		return "", "", err
	}
	module := filepath.Join(root, "tools", "gitea")
	assets, version, err := download(ctx, module)
	if err != nil {
		return "", "", err
	}
	if binary = os.Getenv("FLOTILLA_GITEA"); binary != "" {
		return binary, assets, nil
	}
	if binary, err = processtest.Tool("", "gitea"); err != nil {
		return "", "", err
	}
	return binary, assets, build(ctx, module, version, binary)
}

// download returns the module's folder in the module cache, and its version.
func download(ctx context.Context, module string) (folder, version string, err error) {
	output, err := run(ctx, module, "go", "mod", "download", "-json", giteaModule)
	if err != nil {
		return "", "", err
	}
	var downloaded struct{ Dir, Version string }
	if err := json.Unmarshal(output, &downloaded); err != nil {
		return "", "", fmt.Errorf("go mod download: %w", err)
	}
	return downloaded.Dir, strings.TrimPrefix(downloaded.Version, "v"), nil
}

// build uses the flags of the GNUmakefile, to share its build cache.
func build(ctx context.Context, module, version, binary string) error {
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return err
	}
	// Several test binaries start at the same time.
	unlock, err := lock(binary + ".lock")
	if err != nil {
		return err
	}
	defer unlock()

	if upToDate(binary, filepath.Join(module, "go.mod")) {
		return nil
	}
	flags := []string{"build", "-trimpath", "-ldflags=-s -w -X main.Version=" + version, "-tags=sqlite sqlite_unlock_notify", "-o", binary}
	_, err = run(ctx, module, "go", append(flags, giteaModule)...)
	if err != nil {
		return err
	}
	now := time.Now()
	return os.Chtimes(binary, now, now) // go build keeps the time of an unchanged binary
}

func upToDate(binary, source string) bool {
	built, err := os.Stat(binary)
	if err != nil {
		return false
	}
	changed, err := os.Stat(source)
	return err == nil && !built.ModTime().Before(changed.ModTime())
}

func run(ctx context.Context, folder, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // for SQLite
	output, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, failed.Stderr)
	}
	return output, err
}
