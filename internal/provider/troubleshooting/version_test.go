package troubleshooting

import (
	"fmt"
	"testing"
)

func TestBuildsLinkTheGuideOfTheirRelease(t *testing.T) {
	t.Parallel()
	const guide = "https://github.com/flotilla/terraform-provider-flotilla/blob/%s/docs/guides/troubleshooting.md"
	for version, ref := range map[string]string{
		"1.2.3": "v1.2.3", "0.1.0-rc1": "v0.1.0-rc1", "dev": "main", "": "main", "test": "main", "1.2.3-SNAPSHOT-0a1b2c": "main",
	} {
		if got, want := guideURL(version), fmt.Sprintf(guide, ref); got != want {
			t.Errorf("guideURL(%q) is %s, want %s", version, got, want)
		}
	}
}
