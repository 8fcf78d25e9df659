package git

import (
	"context"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Logger receives texts, numbers and booleans without credentials.
type Logger func(ctx context.Context, message string, fields map[string]any)

func (c *Connector) logAbout(remote Remote) Logger {
	return func(ctx context.Context, message string, fields map[string]any) { c.Log(ctx, remote, message, fields) }
}

// Log adds the remote's URL and branch, and describes errors among the fields.
func (c *Connector) Log(ctx context.Context, remote Remote, message string, fields map[string]any) {
	if c.log == nil {
		return
	}
	told := make(map[string]any, len(fields)+2)
	for name, value := range fields {
		switch value := value.(type) {
		case error:
			told[name] = remote.Describe(value).Error()
		case string:
			told[name] = wording.Visible(remote.Credentials.Scrub(value))
		case time.Duration:
			told[name+"_ms"] = value.Milliseconds()
		default:
			told[name] = value
		}
	}
	told["repository"], told["branch"] = loggedURL(remote.URL), remote.Branch
	c.log(ctx, message, told)
}

// loggedURL returns the URL without secrets.
func loggedURL(raw string) string {
	if CheckURL(raw) != nil {
		return "(not a URL of a repository)"
	}
	if at, ok := parseSSH(raw); ok && at.user != "" {
		return strings.Replace(raw, at.user+"@", "", 1)
	}
	return raw
}
