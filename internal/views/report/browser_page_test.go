package report_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// All subtests share one browser.
func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	middle, small := referencePage(300, true), smallPage()
	large := referencePage(acceptancetest.Count(2_500, 20_000), true)

	t.Run("speed and navigation of the reference fleet", func(t *testing.T) {
		tab := openTab(t, browser, large, tabOptions{})
		t.Logf(
			"first contentful paint after %.0f ms, matrix after %.0f ms, of which the page was at work for %.0f ms",
			evaluate[float64](tab, `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN`),
			evaluate[float64](tab, `performance.now()`),
			tab.workTime(),
		)
		tab.screenshot("20000-light", false)
		tab.run(emulateColours(true))
		tab.screenshot("20000-dark", false)
		tab.run(emulateColours(false))
		for _, filter := range []string{
			`{q: 'app-01'}`, `{q: 'replicas available'}`, `{q: ''}`, `{verdict: ['failed', 'behind']}`, `{label: 'region=region-0007'}`,
			`{workspace: 'team-0004'}`, `{verdict: [], label: '', workspace: '', view: 'list'}`, `{view: 'matrix', rows: 'host', cols: 'target'}`, `{...unset}`,
		} {
			before := tab.workTime()
			took := evaluate[float64](
				tab,
				`(() => { const from = performance.now(); change(`+filter+`); document.body.offsetHeight; return performance.now() - from; })()`,
			)
			worked := tab.workTime() - before
			t.Logf("%-62s %5.1f ms, of which the page was at work for %.1f ms", filter, took, worked)
			if worked > 500 { // five times the promised time
				t.Errorf("filter %s took %.0f ms", filter, worked)
			}
		}
		tab.check("only visible cells are drawn", `document.querySelectorAll('.cell').length < 2000`)
		all := fmt.Sprintf("%d,%03d", len(large.Assignments)/1000, len(large.Assignments)%1000)
		tab.check(
			all+" assignments are counted",
			fmt.Sprintf(`document.getElementById('hits').textContent.startsWith('%s assignments on %d hosts')`, all, countHosts(large)),
		)
		tab.check("assignments are grouped by region and workspace", `document.querySelector('.corner').textContent === 'RegionWorkspace'`)
		tab.click(`.cell.many`)
		tab.waitFor("hosts of one region", `document.querySelector('.corner').textContent.startsWith('Host')`)
		tab.waitFor("the address holds the region", `new URLSearchParams(location.hash.slice(1)).get('region') === 'region-0000'`)
		tab.click(`.cell.one`)
		tab.waitFor("the assignment", `!document.getElementById('detail').hidden`)
		for _, text := range []string{"Why it is there", "By target policy", "Configuration", "Changed last", "from "} {
			tab.check(text+" is shown", `document.getElementById('detail').textContent.includes(`+fmt.Sprintf("%q", text)+`)`)
		}
		tab.screenshot("20000-assignment", false)
		tab.click(`#detail .close`)
		tab.waitFor("the end of the assignment", `document.getElementById('detail').hidden`)
		tab.click(`.grid .line:not(.head) [role=rowheader]`)
		tab.waitFor(
			"the host",
			`document.querySelector('#detail h3').textContent === 'edge-0000' && document.getElementById('detail').textContent.includes(' points')`,
		)
		tab.screenshot("20000-host", false)
		tab.press(kb.Escape)
		tab.click(`#clear`)
		tab.waitFor("all assignments", `document.getElementById('hits').textContent.startsWith('`+all+` ')`)
		tab.click(`#chips .chip:first-child`)
		tab.waitFor("failed assignments only", `document.getElementById('hits').textContent.includes(' of `+all+` ')`)
		tab.click(`#as-list`)
		tab.waitFor("the list", `document.querySelector('.corner').textContent === 'Deployment target'`)
		tab.check("all of them failed", `[...document.querySelectorAll('.grid .verdict')].every((v) => v.textContent === 'failed')`)
		tab.screenshot("20000-list", false)
		tab.click(`.grid .cell.text`)
		tab.waitFor("the assignment", `!document.getElementById('detail').hidden`)
		tab.click(`#glance [data-verdict=unknown] button`)
		tab.waitFor("unknown assignments", `document.querySelector('#chips .chip:nth-child(4)').getAttribute('aria-pressed') === 'true'`)
		tab.click(`#health [data-region] button`)
		tab.waitFor("a region", `document.getElementById('region').value === 'region-0000'`)
		for _, filter := range []string{"workspace", "workload", "region", "state", "rows", "cols"} {
			evaluate[bool](
				tab,
				`((select) => { select.disabled = false; for (const option of [...select.options].slice(-3)) { select.value = option.value; select.dispatchEvent(new Event('change')); } return true; })(document.getElementById('`+filter+`'))`,
			)
		}
		evaluate[bool](tab, `document.querySelectorAll('details').forEach((one) => { one.open = true; }) || true`)
	})

	t.Run("version and source of an assignment", func(t *testing.T) {
		tab := openTab(t, browser, small, tabOptions{})
		evaluate[bool](tab, `change({q: '77f0e1d2c3b4'}) || open(result.found[0]) || true`)
		tab.waitFor("the assignment", `!document.getElementById('detail').hidden`)
		for _, text := range []string{"Wanted versionv2.4.1", "Version on the branchv2.4.0", "Came fromhttps://git.example.com/platform/control-plane@77f0e1d2c3b4"} {
			tab.check(text+" is shown", `document.getElementById('detail').textContent.includes(`+fmt.Sprintf("%q", text)+`)`)
		}
		tab.check(
			"a commit shows its source",
			`document.body.textContent.includes('from https://git.example.com/platform/control-plane@88f0e1d2c3b4')`,
		)
		for _, text := range []string{ // values and their schemas
			`2 values, version 1f0c9a7be2d34c58`, `from east, over defaults, prod; asked for by config schema "net"`,
			`/LOCALEno config container gives it; asked for by config schema "net"`, `from defaults; no schema asks for it`,
		} {
			tab.check(text+" is shown", `document.getElementById('detail').textContent.includes(`+fmt.Sprintf("%q", text)+`)`)
		}
	})

	t.Run("links with escaped values", func(t *testing.T) {
		tab := openTab(t, browser, small, tabOptions{})
		const links = `[...document.querySelectorAll('#detail .links a')].map((a) => a.textContent + ' ' + a.getAttribute('href') + ' ' + a.rel).join('\n')`
		linksOf := func(found int) string {
			evaluate[bool](tab, `change({q: ''}) || open(result.found[`+strconv.Itoa(found)+`]) || true`)
			tab.waitFor("the assignment", `!document.getElementById('detail').hidden`)
			return evaluate[string](tab, links)
		}
		for i, want := range []string{
			"Argo CD https://argocd.example.com/prod-large/payments-app-live?n=payments&w=payments-app&t=payments&h=large noopener noreferrer\n" +
				"Files https://git.example.com/1234567890/clusters/large/payments-app-live noopener noreferrer\n" +
				"<Logs> https://logs.example.com/large/large-01?at=0011223344 noopener noreferrer",
			"Argo CD https://argocd.example.com/prod-small/payments-app-live?n=payments&w=payments-app&t=payments&h=clusters%2Ffactory-7 noopener noreferrer\n" +
				"Files https://git.example.com/fedcba0987/clusters/clusters/factory-7/payments-app-live noopener noreferrer\n" +
				"Shell https://shell.example.com/factory-7 noopener noreferrer\n" +
				"<Logs> https://logs.example.com/small/factory-7?at=4c1ff0a96d noopener noreferrer",
		} {
			if got := linksOf(i); got != want {
				t.Errorf("assignment %d has the links\n%s\nwant\n%s", i, got, want)
			}
		}
	})

	t.Run("hosts and links of owners at paths", func(t *testing.T) {
		owners := smallPage()
		owners.Recorded = true
		for i := range owners.Hosts {
			owners.Hosts[i].Name = "west/" + owners.Hosts[i].Name
		}
		for i := range owners.Assignments {
			owners.Assignments[i].Host = "west/" + owners.Assignments[i].Host
		}
		for i := range owners.Clusters {
			owners.Clusters[i].Name, owners.Clusters[i].Type = "west/"+owners.Clusters[i].Name, "west/"+owners.Clusters[i].Type
		}
		tab := openTab(t, browser, owners, tabOptions{})
		for i, want := range []string{"https://logs.example.com/large/large-01?at=0011223344", "https://logs.example.com/small/factory-7?at=4c1ff0a96d"} {
			evaluate[bool](tab, `change({q: ''}) || open(result.found[`+strconv.Itoa(i)+`]) || true`)
			tab.waitFor("the assignment", `!document.getElementById('detail').hidden`)
			tab.check(want+" is a link", `[...document.querySelectorAll('#detail .links a')].some((a) => a.getAttribute('href') === '`+want+`')`)
		}
		tab.check(
			"the path of the files",
			`document.querySelector('#detail').innerHTML.includes('fedcba0987/clusters/west/clusters/factory-7/payments-app-live')`,
		)
		tab.check(
			"the page has no wanted state",
			`!document.getElementById('unassigned') && !document.body.textContent.includes('Not deployed as wanted')`,
		)
	})

	t.Run("a comparison with different values", func(t *testing.T) {
		tab := openTab(t, browser, small, tabOptions{})
		tab.click(`#comparisons summary`)
		tab.waitFor("the keys", `document.querySelector('#comparisons details').open`)
		for _, text := range []string{"5 deployment targets differ, 12 are the same: stage at 1234567890 beside prod", "v2.4.0 on 2 hosts, v2.4.1 on 1 host", "DATABASE_URL postgres://stage → postgres://east, postgres://west", "2 more"} {
			tab.check(text+" is shown", `document.getElementById('comparisons').textContent.includes(`+fmt.Sprintf("%q", text)+`)`)
		}
		tab.screenshot("3-comparison", true)
	})

	t.Run("running and wanted versions", func(t *testing.T) {
		tab := openTab(t, browser, small, tabOptions{})
		evaluate[bool](tab, `open(0) || true`)
		tab.waitFor("the assignment", `!document.getElementById('detail').hidden`)
		for _, text := range []string{
			"Running versionv2.4.0Revision0a1b2c3d4e5f60718293a4b5c6d7e8f901234567On9 clusters", "Running version2.3.9ChartpaymentsApplicationr7Imagesexample.com/api:7 example.com/web:7On2 clusters",
		} {
			tab.check(text+" is shown", `document.getElementById('detail').textContent.includes(`+fmt.Sprintf("%q", text)+`)`)
		}
		evaluate[bool](tab, `change({view: 'list'}) || true`)
		tab.waitFor("the list", `document.querySelector('.grid').textContent.includes('v2.4.1v2.4.0 (0a1b2c3), 2.3.9')`)
		for filter, want := range map[string]int{
			`{wanted: 'v2.4.1'}`: 2, `{wanted: 'v2.4'}`: 2, `{wanted: 'v2.4.0'}`: 0, `{running: 'v2.4.0'}`: 1, `{running: '2.3.9'}`: 1, `{running: '0a1b'}`: 1, `{running: '2'}`: 1,
			`{running: 'v2.4.1'}`: 0, `{running: 'example.com/web:7'}`: 1, `{running: 'PAYMENTS'}`: 1, `{wanted: 'v2.4.1', running: 'v2.4.0'}`: 1, `{q: '2.3.9'}`: 1, `{q: 'web:7'}`: 1,
		} {
			if got := evaluate[int](tab, `(change({...unset, ...`+filter+`}), result.found.length)`); got != want {
				t.Errorf("%s finds %d assignments, want %d", filter, got, want)
			}
		}
		evaluate[bool](tab, `change(unset) || true`)
		evaluate[bool](
			tab,
			`((input) => { input.value = 'v2.4.0'; input.dispatchEvent(new Event('input')); return true; })(document.getElementById('running'))`,
		)
		tab.waitFor(
			"the address holds the running version",
			`new URLSearchParams(location.hash.slice(1)).get('running') === 'v2.4.0' && document.getElementById('hits').textContent.startsWith('1 of 3')`,
		)
		tab.check(
			"versions are offered",
			`[...document.querySelectorAll('#running-list option')].some((one) => one.value === 'v2.4.0') && [...document.querySelectorAll('#wanted-list option')].some((one) => one.value === 'v2.4.1')`,
		)
		tab.click(`#clear`)
		tab.waitFor("all assignments", `document.getElementById('hits').textContent.startsWith('3 assignments')`)
	})

	t.Run("a view restored from the address", func(t *testing.T) {
		first := openTab(t, browser, middle, tabOptions{})
		evaluate[bool](first, `change({q: 'app-0002', verdict: ['ready'], view: 'list'}) || open(result.found[1]) || true`)
		first.waitFor("the address", `location.hash.includes('open=')`)
		fragment := evaluate[string](first, `location.hash`)
		const shown = `new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(
			document.getElementById('hits').textContent + document.getElementById('detail').textContent +
			document.querySelector('.grid').textContent))))`
		want := evaluate[string](first, shown)
		second := openTab(t, browser, middle, tabOptions{fragment: fragment})
		if got := evaluate[string](second, shown); got != want {
			t.Errorf("with %s:\n%s\nwant\n%s", fragment, got, want)
		}
		evaluate[bool](second, `(location.hash = '#q=nobody-has-this&verdict=nonsense&rows=nonsense&open=nonsense') && true`)
		second.waitFor("nothing", `document.getElementById('hits').textContent === 'Nothing fits these filters'`)
	})

	t.Run("navigation by keyboard", func(t *testing.T) {
		tab := openTab(t, browser, middle, tabOptions{})
		evaluate[bool](tab, `document.getElementById('as-list').focus() || true`)
		tab.press(kb.Tab)
		tab.check("one Tab leads to the grid", `document.activeElement.getAttribute('role') === 'gridcell'`)
		tab.check("the grid has one stop", `document.querySelectorAll('.grid [tabindex="0"]').length === 1`)
		tab.press(kb.ArrowRight, kb.ArrowDown, kb.ArrowDown)
		tab.check("arrows move", `document.activeElement.row === 2 && document.activeElement.col === 1`)
		tab.press(kb.End)
		tab.check(
			"the last column can be seen",
			`document.activeElement.col === grid.model.cols - 1 && document.activeElement.getBoundingClientRect().right <= grid.scroller.getBoundingClientRect().right + 1`,
		)
		tab.press(kb.PageDown, kb.Home)
		tab.check("Home leads to the host", `document.activeElement.getAttribute('role') === 'rowheader'`)
		tab.press(kb.PageUp, kb.PageUp, kb.ArrowRight)
		tab.check("the focus can be seen", `getComputedStyle(document.activeElement).outlineStyle === 'solid'`)
		tab.press(kb.Enter)
		tab.waitFor("the assignment", `!document.getElementById('detail').hidden && document.activeElement.id === 'detail'`)
		tab.press(kb.Escape)
		tab.check("Escape leads back to the cell", `document.getElementById('detail').hidden && document.activeElement.classList.contains('cell')`)
		tab.press(kb.Tab)
		tab.check("one Tab leaves the grid", `!document.activeElement.closest('.grid')`)
	})

	t.Run("contrast and names", func(t *testing.T) {
		tab := openTab(t, browser, small, tabOptions{})
		tab.screenshot("3-light", true)
		views := []string{`{}`, `{rows: 'region', cols: 'workspace'}`, `{view: 'list'}`, `{...unset, open: keyOf(0)}`}
		if !acceptancetest.All() { // the assignment shows the same matrix, and a phone shows the list
			views = []string{views[3], `{...unset, rows: 'region', cols: 'workspace'}`}
		}
		part := "body"
		for _, view := range views {
			evaluate[bool](tab, `change(`+view+`) || true`)
			tab.checkAccessibility(view, part)
			if !acceptancetest.All() {
				part = "#explorer" // the rest does not change
			}
		}
		tab.screenshot("3-light-assignment", false)
		tab.run(emulateColours(true))
		tab.screenshot("3-dark-assignment", false)
		if acceptancetest.All() {
			for name, dark := range map[string]bool{"light": false, "dark": true} {
				openTab(t, browser, middle, tabOptions{dark: dark}).screenshot("300-"+name, true)
			}
			openTab(t, browser, small, tabOptions{dark: true}).screenshot("3-dark", true)
		}
	})

	t.Run("a phone", func(t *testing.T) {
		openOnPhone := func(name string, page *report.Page) *tab {
			tab := openTab(t, browser, page, tabOptions{width: 390, height: 844})
			tab.check("nothing is wider than the screen", `document.documentElement.scrollWidth <= 390`)
			tab.check("the list is first", `grid.scroller.classList.contains('list')`)
			tab.screenshot(name+"-narrow", true)
			return tab
		}
		if acceptancetest.All() {
			openOnPhone("300", middle)
		}
		tab := openOnPhone("3", small)
		tab.checkAccessibility("the list", "body")
		evaluate[bool](tab, `open(0) || true`)
		tab.screenshot("3-narrow-assignment", false)
	})

	t.Run("a browser without scripts", func(t *testing.T) {
		pages := map[string]*report.Page{"3": small}
		if acceptancetest.All() {
			pages["300"] = middle
		}
		for name, page := range pages {
			tab := openTab(t, browser, page, tabOptions{noScript: true})
			for _, selector := range []string{`#glance .tiles`, `#rollouts table`, `#all details`, `noscript p a`} {
				tab.run(chromedp.WaitVisible(chromedp.CSS(selector)))
			}
			tab.run(chromedp.WaitNotVisible(chromedp.CSS(`#explorer`)))
			tab.screenshot(name+"-no-script", true)
		}
	})

	t.Run("hostile texts", func(t *testing.T) {
		values := []string{
			`<img src=/image onerror=alert(1)>`, `</script><script src=/script></script>`, `"><iframe src=/frame></iframe>`, `</noscript><link rel=stylesheet href=/style>`,
			`{{constructor.constructor('alert(1)')()}}`,
		}
		if !acceptancetest.All() {
			values = []string{strings.Join(values, " ")}
		}
		for _, value := range values {
			tab := openTab(t, browser, pageOf(value), tabOptions{})
			for _, view := range []string{`{view: 'list'}`, `{rows: 'region', cols: 'workload'}`, `{...unset}`} {
				evaluate[bool](tab, `change(`+view+`) || true`)
			}
			evaluate[bool](tab, `open(0) || dispatchEvent(new Event('beforeprint'))`)
			tab.check("the text is shown as it is", fmt.Sprintf(`document.querySelector('#detail h3').textContent === %q`, value))
		}
	})

	t.Run("a printed page", func(t *testing.T) {
		for name, options := range map[string]tabOptions{"light": {}, "dark": {dark: true}} {
			if !acceptancetest.All() && !options.dark {
				continue
			}
			tab := openTab(t, browser, small, options)
			pdf, err := chromedp.Run(tab.context, chromedp.PrintToPDF())
			if err != nil {
				t.Fatal(err)
			}
			save(t, "3-print-"+name+".pdf", pdf)
			tab.check("nothing remains after printing", `document.getElementById('print').children.length === 0`)
			evaluate[bool](tab, `dispatchEvent(new Event('beforeprint'))`)
			tab.check("the found assignments are printed", `document.querySelectorAll('#print tbody tr').length === result.found.length`)
		}
	})
}

// countHosts counts the hosts that have assignments.
func countHosts(p *report.Page) int {
	hosts := map[string]bool{}
	for i := range p.Assignments {
		hosts[p.Assignments[i].Host] = true
	}
	return len(hosts)
}
