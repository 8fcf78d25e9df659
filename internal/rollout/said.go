package rollout

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// saidForm is the form of what [Progress.String] writes: whether the stage is one of what is removed, its number, of how many, its
// name, the hosts that are done, of how many, since when, the ending, the deployment target and its content.
var saidForm = regexp.MustCompile(
	`^(?:(` + removalOf + `)?stage (\d{1,9}) of (\d{1,9})(?: ("(?:[^"\\]|\\.)*"))?, )?(\d{1,9}) of (\d{1,9}) hosts?(?:, since (\S+Z))?, ([^(]*?)(?: \((.*)@(.+)\))?$`,
)

// saidEndings are all that a change can say at its end, with what that means.
var saidEndings = func() map[string]Progress {
	all := []Progress{
		{Failed: true, WaitsFor: waitsForFix}, {Failed: true, WentBack: true, WaitsFor: waitsForFix},
		{Failed: true, Stuck: true, WaitsFor: waitsForProgress}, {Failed: true, Stuck: true, WentBack: true, WaitsFor: waitsForProgress},
	}
	for _, why := range whatIsWaitedFor {
		all = append(all, Progress{WaitsFor: why})
	}
	endings := map[string]Progress{}
	for _, p := range all {
		endings[p.ending()] = p
	}
	return endings
}()

// ParseProgress reads what [Progress.String] has written of a deployment target:
// all but what that leaves out, which is how many folders wait, and the approval that has failed content tried again.
func ParseProgress(target, text string) (Progress, error) {
	found := saidForm.FindStringSubmatch(text)
	if found == nil {
		found = make([]string, saidForm.NumSubexp()+1)
	}
	p, ok := saidEndings[found[8]]
	p.DeploymentTarget, p.Content = target, found[10]
	for i, number := range map[int]*int{2: &p.Stage, 3: &p.Of, 5: &p.Done, 6: &p.Hosts} {
		*number, _ = strconv.Atoi(found[i]) // nine digits at most, or none
	}
	p.Removes = found[1] != ""
	p.Name, _ = strconv.Unquote(found[4])
	p.Since, _ = time.Parse(time.RFC3339, found[7])
	if !ok || p.Stage > p.Of || p.String() != text {
		return Progress{}, fmt.Errorf("%q is not what rolling_out says of a deployment target", text)
	}
	return p, nil
}
