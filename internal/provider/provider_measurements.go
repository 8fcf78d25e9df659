package provider

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/measure"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// measurementsSettings is the provider's attribute measurements.
type measurementsSettings struct {
	credentials  git.Credentials     // not in plain text
	headers      []map[string]string // of credentials.ByURL
	certificates string
	complete     bool // false while a part is unknown
}

// decodeMeasurements reads the attribute measurements. Environment variables replace absent attributes. Credentials without
// an entry of their own belong to url.
func decodeMeasurements(value types.Dynamic, diagnostics *diag.Diagnostics) measurementsSettings {
	settings, o := measurementsSettings{}, readLogin(MeasurementsTable, value)
	login := o.login("FLOTILLA_MEASUREMENTS_")
	address := o.textOr("url", "FLOTILLA_MEASUREMENTS_URL")
	switch {
	case address != "":
		settings.add(o.ObjectReader, address, login, nil)
	case login.Token+login.Username+login.Password != "" && !o.Has("url"):
		o.Report(
			"url",
			"is required with token, username and password, which are sent to no other server; or set FLOTILLA_MEASUREMENTS_URL beside the "+
				"other variables",
		)
	}
	settings.certificates = o.Text("ca_certificates")
	for _, origin := range o.List("credentials") {
		settings.decodeOrigin(origin)
	}
	if err := settings.credentials.Check(); err != nil {
		o.reader.Report(nil, "%s", err)
	}
	settings.complete = o.finish("measurements", diagnostics)
	return settings
}

func (s *measurementsSettings) decodeOrigin(origin *fleet.ObjectReader) {
	address := origin.Required("url")
	login := git.Login{Token: origin.Text("token"), Username: origin.Text("username"), Password: origin.Text("password")}
	headers := origin.TextMap("headers")
	for _, problem := range measure.CheckHeaders(headers, true) {
		origin.Report("headers", "%s", problem)
	}
	origin.Finish()
	if address != "" {
		s.add(origin, address, login, headers)
	}
}

// add adds credentials for URLs that begin with an address. Its errors never repeat the address, which may have a password.
func (s *measurementsSettings) add(o *fleet.ObjectReader, address string, login git.Login, headers map[string]string) {
	if problem := measure.CheckURL(address); problem != "" {
		o.Report("url", "%s", strings.Replace(problem, "set them in measurements.credentials of the provider", "set them beside it", 1))
		return
	}
	s.credentials.ByURL = append(s.credentials.ByURL, git.URLCredentials{URL: address, Login: login})
	s.headers = append(s.headers, headers)
}

func (s *measurementsSettings) client(userAgent string) (*measure.Measurer, error) {
	over, err := git.NewHTTPTransport(s.certificates)
	if err != nil || !s.complete {
		return nil, err
	}
	return &measure.Measurer{Over: over, Login: s.login, Scrub: s.scrubber(), UserAgent: userAgent}, nil
}

func (s *measurementsSettings) scrubber() secret.Scrubber {
	var all, usernames []string
	for i, by := range s.credentials.ByURL {
		all, usernames = append(all, by.Token, by.Password), append(usernames, by.Username)
		all = slices.AppendSeq(all, maps.Values(s.headers[i]))
	}
	return secret.NewScrubber(all, usernames...)
}

func (s *measurementsSettings) login(address string) (measure.Login, error) {
	permit, err := s.credentials.Decide(access.Request{URL: withoutQuery(address)})
	if err != nil {
		return measure.Login{}, err
	}
	login := measure.Login{Token: permit.Login.Token, Username: permit.Login.Username, Password: permit.Login.Password}
	if index := int(permit.Grant.Login); index >= 0 {
		login.Headers = maps.Clone(s.headers[index])
	}
	return login, nil
}

func withoutQuery(address string) string {
	before, _, _ := strings.Cut(address, "?")
	return before
}
