package report_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// patience is the time limit for a browser on a busy machine.
const patience = 2 * time.Minute

// screenshots is the folder of screenshots. Go does not cache results of tests that read new files within the module.
var screenshots = filepath.Join(os.TempDir(), "flotilla-report")

// browser is a headless Chromium. Each page is loaded into the same tab, because a process for each costs more than the pages.
type browser struct {
	context context.Context
	tab     context.Context // nil until the first page, and after a failure
	close   func()

	mu      sync.Mutex
	current *tab
}

// startBrowser starts a browser that ends with the test. Without Chromium, it skips the test.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a browser, which -short leaves out")
	}
	program := chromium()
	if program == "" {
		t.Skip("needs a browser: no Chromium on PATH, which `apt-get install chromium` brings; FLOTILLA_CHROMIUM names another one")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(patience))
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	started, quit := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(func() {
		quit()
		stop()
	})
	if err := chromedp.Do(started); err != nil {
		t.Fatalf("%s does not start: %v", program, err)
	}
	return &browser{context: started}
}

func chromium() string {
	if program := os.Getenv("FLOTILLA_CHROMIUM"); program != "" {
		return program
	}
	for _, name := range []string{
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	return ""
}

// tab is a page in the browser, with its requests and complaints.
type tab struct {
	t       *testing.T
	context context.Context
	address string

	mu         sync.Mutex
	requests   []string
	complaints []string
}

// tabOptions control how a tab shows a page.
type tabOptions struct {
	width, height int64
	dark          bool
	noScript      bool
	fragment      string
}

// openTab shows a page and waits until it is ready. At the end of the test, the page must have requested only itself, and the
// browser must have no complaints.
func openTab(t *testing.T, in *browser, p *report.Page, options tabOptions) *tab {
	t.Helper()
	opened := &tab{t: t}
	text := renderHTML(t, p)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		opened.add(&opened.requests, r.URL.Path)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	limited, cancel := context.WithTimeout(in.openOnce(t, opened), patience)
	t.Cleanup(cancel)
	opened.context, opened.address = limited, server.URL+"/page"

	if options.width == 0 {
		options.width, options.height = 1440, 1000
	}
	opened.resize(options.width, options.height)
	opened.run(
		command(log.Enable, cdp.Empty{}),
		command(performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}),
		emulateColours(options.dark),
		command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: options.noScript}),
		chromedp.Navigate(opened.address+options.fragment),
	)
	opened.waitFor("the page", fmt.Sprintf(`location.href.startsWith(%q) && document.readyState === 'complete'`, opened.address))
	if !options.noScript {
		opened.waitFor("the filters", `!document.getElementById('explorer').hidden && document.getElementById('hits').textContent !== ''`)
	}
	t.Cleanup(func() {
		opened.mu.Lock()
		defer opened.mu.Unlock()
		defer in.closeAfterFailure(t)
		if len(opened.requests) != 1 || opened.requests[0] != "/page" {
			t.Errorf("the page requested %q, want only itself", opened.requests)
		}
		for _, complaint := range opened.complaints {
			t.Errorf("the browser complains: %s", complaint)
		}
	})
	return opened
}

// openOnce returns the browser's tab. From now on, its events belong to shown.
func (b *browser) openOnce(t *testing.T, shown *tab) context.Context {
	t.Helper()
	b.mu.Lock()
	b.current = shown
	b.mu.Unlock()
	if b.tab != nil {
		return b.tab
	}
	opened, stop := chromedp.NewContext(b.context)
	if err := chromedp.Do(opened); err != nil {
		t.Fatal(err)
	}
	err := chromedp.Listen(opened, func(event any) {
		b.mu.Lock()
		current := b.current
		b.mu.Unlock()
		current.record(event)
	})
	if err != nil {
		t.Fatal(err)
	}
	b.tab, b.close = opened, stop
	return opened
}

// closeAfterFailure closes the tab of a failed test: it may wait for an answer to a dialog.
func (b *browser) closeAfterFailure(t *testing.T) {
	if t.Failed() && b.tab != nil {
		b.close()
		b.tab = nil
	}
}

func (o *tab) add(list *[]string, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*list = append(*list, text)
}

// record adds errors, console output, dialogs and navigation to the complaints.
func (o *tab) record(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded:
		o.add(&o.complaints, fmt.Sprintf("%s: %s (%s)", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *runtime.EventExceptionThrown:
		o.add(&o.complaints, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		o.add(&o.complaints, "console."+string(e.Type))
	case *page.EventJavascriptDialogOpening:
		o.add(&o.complaints, "a dialog: "+e.Message)
	case *page.EventFrameRequestedNavigation:
		o.add(&o.complaints, "goes to "+e.URL)
	}
}

// command returns a command of the protocol without an answer.
func command[P any](c cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// emulateColours emulates a light or a dark screen without motion.
func emulateColours(dark bool) chromedp.Action[chromedp.Void] {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// workTime returns the working time of the page's thread in milliseconds. It does not depend on the load of the machine.
func (o *tab) workTime() float64 {
	o.t.Helper()
	metrics, err := chromedp.Run(o.context, func(ctx context.Context, t *chromedp.Target) (performance.GetMetricsResult, error) {
		return cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
	})
	if err != nil {
		o.t.Fatal(err)
	}
	for _, metric := range metrics.Metrics {
		if metric.Name == "TaskDuration" {
			return metric.Value * 1000
		}
	}
	o.t.Fatal("the browser reports no working time")
	return 0
}

func (o *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	o.t.Helper()
	if err := chromedp.Do(o.context, actions...); err != nil {
		o.t.Fatal(err)
	}
}

// evaluate evaluates an expression, which may be a promise.
func evaluate[T any](o *tab, expression string) T {
	o.t.Helper()
	answer, err := chromedp.Run(o.context, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		o.t.Fatalf("%.200s: %v", expression, err)
	}
	return answer
}

// waitFor waits for an expression to be true.
func (o *tab) waitFor(description, expression string) {
	o.t.Helper()
	for end := time.Now().Add(patience / 2); !evaluate[bool](o, "Boolean("+expression+")"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			o.t.Fatalf("%s: the expression never became true: %s", description, expression)
		}
	}
}

// check fails the test unless an expression is true.
func (o *tab) check(description, expression string) {
	o.t.Helper()
	if !evaluate[bool](o, "Boolean("+expression+")") {
		o.t.Errorf("%s: the expression is false: %s", description, expression)
	}
}

// click clicks on the first visible element of a selector.
func (o *tab) click(selector string) {
	o.t.Helper()
	o.run(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// press presses keys, one after the other.
func (o *tab) press(keys ...string) {
	o.t.Helper()
	for _, key := range keys {
		o.run(chromedp.KeyEvent(key))
	}
}

// screenshot saves the visible part of the tab, or the whole page.
func (o *tab) screenshot(name string, whole bool) {
	o.t.Helper()
	if !acceptancetest.All() {
		return
	}
	action := chromedp.CaptureScreenshot()
	if whole {
		action = chromedp.FullScreenshot(100)
	}
	picture, err := chromedp.Run(o.context, action)
	if err != nil {
		o.t.Fatal(err)
	}
	save(o.t, name+".png", picture)
}

func save(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(screenshots, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(screenshots, name), content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// resize changes the size of the tab's screen.
func (o *tab) resize(width, height int64) {
	o.t.Helper()
	o.run(command(
		emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1},
	))
}

// checkAccessibility fails the test if axe-core finds a fault in a part of the page, or too little contrast on a dark screen.
// Only the light screen is checked by all rules: names are the same on both.
func (o *tab) checkAccessibility(description, part string) {
	o.t.Helper()
	if faults := o.accessibilityFaults(part); faults != "" {
		o.t.Errorf("%s:\n%s", description, faults)
	}
	o.run(emulateColours(true))
	if faults := o.accessibilityFaults(part, "color-contrast"); faults != "" {
		o.t.Errorf("%s, dark:\n%s", description, faults)
	}
	o.run(emulateColours(false))
}

// accessibilityFaults returns the faults that axe-core finds in the part of the page with a selector, by the named rules or by all.
func (o *tab) accessibilityFaults(part string, rules ...string) string {
	o.t.Helper()
	if !evaluate[bool](o, "Boolean(window.axe)") {
		axe, err := os.ReadFile(filepath.Join("testdata", "axe", "axe.min.js"))
		if err != nil {
			o.t.Fatal(err)
		}
		evaluate[bool](o, string(axe)+"; true")
	}
	options := `{resultTypes: ['violations']`
	if len(rules) > 0 {
		options += `, runOnly: ["` + strings.Join(rules, `", "`) + `"]`
	}
	found := evaluate[[]string](o, `axe.run(`+fmt.Sprintf("%q", part)+`, `+options+`}).then((all) => all.violations.flatMap((rule) =>
		rule.nodes.slice(0, 5).map((node) => rule.id + ': ' + node.html.slice(0, 200) + ' ' + node.failureSummary)))`)
	return strings.Join(found, "\n")
}
