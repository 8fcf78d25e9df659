package report

// HTML returns the page as one file of HTML that asks nobody for anything. It
// is UTF-8.
func HTML(p *Page) ([]byte, error) { return nil, nil }

// Markdown returns the page for a pull request: the counts, and then what somebody
// should look at. It has at most limit bytes; what does not fit is left out, line
// by line, and the last line says how many lines that were. A limit of 0 is none.
func Markdown(p *Page, limit int) string { return "" }
