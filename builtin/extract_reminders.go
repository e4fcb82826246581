package builtin

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// maxReminders is how many reminders one tool output may hold.
const maxReminders = 32

// extractOptions are the options of "extract_reminders". By default, reminders are texts
// between <system-reminder> and </system-reminder>, and values of the members
// system_reminder and reminder. An option replaces this default.
type extractOptions struct {
	// Field is the path of a member whose value is the reminder (a string or a list of
	// strings), with names separated by dots: "result.system_notes".
	Field string `json:"field"`
	// Pattern is an RE2 expression with one group, which is the reminder.
	Pattern string `json:"pattern"`
}

// newExtractReminders makes the hook "extract_reminders": it repeats each reminder in a
// tool's output as a user message, which an agent heeds more than text inside a result.
// The output is not changed.
func newExtractReminders(h schema.Hook) (workers.Handler, error) {
	o, err := options[extractOptions](h)
	if err != nil {
		return nil, err
	}
	if h.Event != schema.PostToolUse && h.Event != schema.ToolError {
		return nil, fmt.Errorf("%q reads the output of tools, which %s does not have; put it under PostToolUse or ToolError", h.Handler, h.Event)
	}
	x, err := o.extractor(h)
	if err != nil {
		return nil, err
	}
	return workers.HandlerFunc(func(_ context.Context, e *schema.Event) (schema.Result, error) {
		return x.result(e), nil
	}), nil
}

// extractor has the places and patterns to search.
type extractor struct {
	fields  [][]string
	pattern *regexp.Regexp
	// hints are strings of which every output with a reminder contains one, so that most
	// outputs need not be decoded. Empty: every output is decoded.
	hints []string
}

func (o extractOptions) extractor(h schema.Hook) (x extractor, err error) {
	if o == (extractOptions{}) {
		return extractor{
			fields:  [][]string{{"system_reminder"}, {"reminder"}},
			pattern: regexp.MustCompile(`(?s)<system-reminder>(.*?)</system-reminder>`),
			hints:   []string{"reminder"},
		}, nil
	}
	if o.Field != "" {
		path := strings.Split(o.Field, ".")
		if slices.Contains(path, "") {
			return x, fmt.Errorf("the option \"field\" of %q is %q, which contains an empty name; write names separated by single dots", h.Handler, o.Field)
		}
		x.fields = [][]string{path}
	}
	if o.Pattern != "" {
		if x.pattern, err = regexp.Compile(o.Pattern); err != nil {
			return x, fmt.Errorf("the option \"pattern\" of %q is invalid: %w", h.Handler, err)
		}
		if n := x.pattern.NumSubexp(); n != 1 {
			return x, fmt.Errorf("the option \"pattern\" of %q has %d groups; put one pair of parentheses around the reminder", h.Handler, n)
		}
	}
	return x, nil
}

// result returns the hook's answer to e.
func (x *extractor) result(e *schema.Event) (res schema.Result) {
	f := finding{extractor: x}
	if x.worthwhile(string(e.ToolOutput)) {
		f.output(e.ToolOutput)
	}
	for _, text := range f.reminders {
		res.Injections = append(res.Injections, schema.Injection{Content: text, Strategy: schema.UserMessage})
	}
	if f.left > 0 {
		res.HookErrors = []string{fmt.Sprintf("dropped at least %d reminders; from one output, at most %d reminders with %d bytes together reach the agent", f.left, maxReminders, maxText)}
	}
	return res
}

// worthwhile reports whether output may contain a reminder.
func (x *extractor) worthwhile(output string) bool {
	for _, hint := range x.hints {
		if strings.Contains(output, hint) {
			return true
		}
	}
	return len(x.hints) == 0 || strings.Contains(output, `\u`)
}
