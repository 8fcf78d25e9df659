package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"unicode/utf8"
)

// The scripts are one script, in this order.
var (
	//go:embed assets/page.html
	pageHTML string
	//go:embed assets/page.css
	pageCSS string
	//go:embed assets/data.js
	dataScript string
	//go:embed assets/grid.js
	gridScript string
	//go:embed assets/detail.js
	detailScript string
	//go:embed assets/page.js
	pageScript string
)

var pageTemplate = template.Must(template.New("page").Funcs(functions).Parse(pageHTML))

// HTML returns one HTML file in UTF-8 that loads nothing, by its content security policy, and is readable without scripts. A page
// over 8 MiB omits values of snapshots. An error is a bug in this package.
func HTML(p *Page) ([]byte, error) {
	rows := listing(p)
	encoded, err := encode(p, everything)
	for detail := withoutTexts; err == nil && detail >= withoutValues && len(encoded)+len(rows)+comparisonBytes(p) > dataBytes; detail-- {
		encoded, err = encode(p, detail)
	}
	if err != nil {
		return nil, err
	}
	script := dataScript + gridScript + detailScript + pageScript
	var b bytes.Buffer
	b.Grow(len(encoded) + len(rows) + 1<<18)
	err = pageTemplate.Execute(&b, &view{
		Page:       p,
		Style:      template.CSS(pageCSS),
		Script:     template.JS(script),
		Data:       template.JS(encoded),
		Listing:    rows,
		StyleHash:  hash(pageCSS),
		ScriptHash: hash(script),
		Counts:     p.Count(),
	})
	if err != nil {
		return nil, err
	}
	return visible(b.Bytes()), nil
}

// dataBytes keeps the whole page below 8 MiB.
const dataBytes = 7<<20 + 1<<18

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// visible replaces invisible characters and invalid UTF-8.
func visible(text []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if ' ' <= r && r <= '~' { // nearly all of a page
			return r
		}
		if r != '\n' && (r == '\u2028' || r == '\u2029' || isHidden(r)) {
			return utf8.RuneError
		}
		return r
	}, text)
}
