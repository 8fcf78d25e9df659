package observe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Evidence is bounded in all that it has.
const (
	maxEvidence = 64 << 20 // bytes: 100,000 assignments on 10,000 clusters are a quarter of that
	maxText     = 4096     // bytes of one text
)

// Parse reads what [Evidence.Marshal] wrote, however it is indented and in whatever order. An attribute
// that does not belong there, or comes twice, is an error.
func Parse(text []byte) (*Evidence, error) {
	e, err := parseEvidence(text)
	if err != nil {
		return nil, fmt.Errorf("the evidence is not what flotilla_compliance gives: %w", err)
	}
	return e, nil
}

func parseEvidence(text []byte) (*Evidence, error) {
	if len(text) > maxEvidence {
		return nil, fmt.Errorf("it is longer than %d MiB", maxEvidence>>20)
	}
	r := newEvidenceReader(text)
	e := &Evidence{Clusters: map[string]Cluster{}, Trees: map[string]map[string]string{}}
	var has members
	var format string
	err := r.object(func(name string) (err error) {
		if err := has.once(name, "format", "owner", "environment", "branch", "path", "time", "tip", "clusters", "trees"); err != nil {
			return err
		}
		switch name {
		case "format":
			format, err = r.string()
		case "owner":
			e.About.Owner, err = r.string()
		case "environment":
			e.About.Environment, err = r.string()
		case "branch":
			e.About.Branch, err = r.string()
		case "path":
			e.About.Path, err = r.string()
		case "time":
			e.Time, err = r.time()
		case "tip":
			e.Tip, err = r.commit()
		case "clusters":
			err = each(r, e.Clusters, r.cluster)
		case "trees":
			err = each(r, e.Trees, r.trees)
		}
		return err
	})
	if err == nil && r.space() < len(text) {
		err = fmt.Errorf("text follows it at byte %d", r.at)
	}
	// Errors of another format would mislead: only the format is reported.
	if format != "" && format != evidenceFormat {
		return nil, fmt.Errorf("it has the format %q, and this version of the provider reads %q; use one version everywhere", format, evidenceFormat)
	}
	if err != nil {
		return nil, err
	}
	if missing := has.missing("format", "owner", "environment", "branch", "path", "time", "tip", "clusters", "trees"); missing != "" {
		return nil, fmt.Errorf("it has no %q", missing)
	}
	return e, nil
}

// each reads an object with an entry for each name.
func each[T any](r *evidenceReader, into map[string]T, read func(name string) (T, error)) error {
	return r.object(func(name string) error {
		if _, twice := into[name]; twice {
			return fmt.Errorf("%q comes twice", name)
		}
		value, err := read(name)
		if err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		into[name] = value
		return nil
	})
}

func (r *evidenceReader) cluster(name string) (c Cluster, err error) {
	if name == "" {
		return c, errors.New("a cluster needs a name")
	}
	var has members
	var assignments []assignmentMembers
	err = r.object(func(name string) (err error) {
		if err := has.once(name, "type", "commit", "verdict", "since", "message", "of", "assignments"); err != nil {
			return err
		}
		switch name {
		case "type":
			c.Type, err = r.string()
		case "commit":
			c.Commit, err = r.commit()
		case "verdict":
			c.Verdict, err = r.verdict()
		case "since":
			c.Since, err = r.sinceTime()
		case "message":
			c.Message, err = r.string()
		case "of":
			c.OfRoot, err = r.subject()
		case "assignments":
			assignments, err = r.assignments()
		}
		return err
	})
	if err != nil {
		return c, err
	}
	if missing := has.missing("type", "commit", "verdict"); missing != "" {
		return c, fmt.Errorf("it has no %q", missing)
	}
	return c, c.take(assignments)
}

// assignmentMembers are the attributes that an assignment has of its own.
type assignmentMembers struct {
	key string
	AssignmentStatus
	commit, verdict, since, message, of bool
}

func (r *evidenceReader) assignments() (all []assignmentMembers, err error) {
	err = r.object(func(key string) error {
		a := assignmentMembers{key: key}
		err := checkKey(key)
		if err == nil {
			err = r.assignment(&a)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		all = append(all, a)
		return nil
	})
	return all, err
}

func (r *evidenceReader) assignment(a *assignmentMembers) error {
	once := func(has *bool, name string) error {
		if *has {
			return fmt.Errorf("%q comes twice", name)
		}
		*has = true
		return nil
	}
	return r.object(func(name string) (err error) {
		switch name {
		case "commit":
			if err = once(&a.commit, name); err == nil {
				a.Commit, err = r.commit()
			}
		case "verdict":
			if err = once(&a.verdict, name); err == nil {
				a.Verdict, err = r.verdict()
			}
		case "since":
			if err = once(&a.since, name); err == nil {
				a.Since, err = r.sinceTime()
			}
		case "message":
			if err = once(&a.message, name); err == nil {
				a.Message, err = r.string()
			}
		case "of":
			if err = once(&a.of, name); err == nil {
				a.OfRoot, err = r.subject()
			}
		default:
			err = fmt.Errorf("%q does not belong here", name)
		}
		return err
	})
}

// take gives the assignments to their cluster, with what they have from it.
func (c *Cluster) take(assignments []assignmentMembers) error {
	if len(assignments) == 0 {
		return nil
	}
	c.Assignments = make(map[string]AssignmentStatus, len(assignments))
	for _, a := range assignments {
		if _, twice := c.Assignments[a.key]; twice {
			return fmt.Errorf("%q comes twice", a.key)
		}
		own := AssignmentStatus{Commit: c.Commit, Status: c.Status}
		if a.commit {
			own.Commit = a.Commit
		}
		if a.verdict {
			own.Verdict = a.Verdict
		}
		if a.since {
			own.Since = a.Since
		}
		if a.message {
			own.Message = a.Message
		}
		if a.of {
			own.OfRoot = a.OfRoot
		}
		c.Assignments[a.key] = own
	}
	return nil
}

func (r *evidenceReader) trees(commit string) (map[string]string, error) {
	if !isID(commit) {
		return nil, errors.New("it is not the id of a commit")
	}
	trees := map[string]string{}
	return trees, each(r, trees, func(key string) (string, error) {
		if err := checkKey(key); err != nil {
			return "", err
		}
		return r.id("a tree")
	})
}

// checkKey checks the key of an assignment: a host and a deployment target.
func checkKey(key string) error {
	if at := strings.LastIndexByte(key, '/'); at < 1 || at == len(key)-1 {
		return errors.New("it is not the key of an assignment, as in <host>/<deployment target>")
	}
	return nil
}

// isID reports whether text is the whole id of an object of Git.
func isID(text string) bool {
	if len(text) != 40 && len(text) != 64 {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// members are the attributes that an object has.
type members []string

func (m *members) once(name string, known ...string) error {
	if !slices.Contains(known, name) {
		return fmt.Errorf("%q does not belong here", name)
	}
	if slices.Contains(*m, name) {
		return fmt.Errorf("%q comes twice", name)
	}
	*m = append(*m, name)
	return nil
}

// missing returns the first name that the object does not have.
func (m *members) missing(names ...string) string {
	for _, name := range names {
		if !slices.Contains(*m, name) {
			return name
		}
	}
	return ""
}
