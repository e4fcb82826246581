package app

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// feedTime is the format of the time of a verdict.
const feedTime = "2006-01-02T15:04:05.000Z"

// feedLine returns a record as one line of text.
func feedLine(rec *schema.Record) string {
	columns := []string{
		rec.Time.UTC().Format(feedTime), fmt.Sprintf("%-8s", feedDecision(rec)), fmt.Sprintf("%-10s", rec.Event),
		fmt.Sprintf("%-12s", word(rec.Agent)), fmt.Sprintf("%-6s", word(rec.Tool)),
	}
	columns = append(columns, feedDetails(rec)...)
	return strings.TrimRight(strings.Join(columns, " "), " ")
}

// feedDecision returns the decision of a verdict, or the kind of another record.
func feedDecision(rec *schema.Record) string {
	switch {
	case rec.Expired != nil:
		return "expired"
	case rec.Freeze != nil:
		return rec.Freeze.Action
	case rec.Lost > 0:
		return "lost"
	case rec.More > 0:
		return "limited"
	case rec.Aside && rec.Would != "":
		return "shadow"
	case rec.Aside:
		return "aside"
	}
	return cmp.Or(string(rec.Decision), string(schema.Continue))
}

// feedDetails returns the optional columns.
func feedDetails(rec *schema.Record) (all []string) {
	add := func(when bool, format string, args ...any) {
		if when {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(rec.Took > 0, "%s", rec.Took.Std().Round(10*time.Microsecond))
	if it := rec.Expired; it != nil {
		add(true, "%s from %s for %s, %d bytes", it.Key, word(it.Source), forWhom(it.Scope), it.Length)
	}
	if z := rec.Freeze; z != nil {
		add(true, "of %s by %s (not verified) %s", word(z.Agents), word(z.By), quoted(z.Reason))
	}
	add(rec.Lost > 0, "%d calls without a verdict and without a record", rec.Lost)
	add(rec.More > 0, "%d more events without a verdict", rec.More)
	add(rec.Reason != "", "%s", quoted(rec.Reason))
	add(rec.Would != "", "would have been %s", rec.Would)
	add(rec.Unjudged && rec.Lost == 0, "the shim decided: no broker answered")
	add(rec.Frozen, "frozen")
	add(rec.Shed, "shed")
	add(rec.Limited != "", "over-its-%s", rec.Limited)
	add(rec.Malformed, "malformed")
	add(rec.Failed != "", "failed-%s", rec.Failed)
	add(rec.Attempt > 1, "attempt-%d", rec.Attempt)
	add(rec.Rewritten, "rewritten")
	add(len(rec.Injections) > 0, "injections:%d", len(rec.Injections))
	for i := range rec.ExecutedHooks {
		x := &rec.ExecutedHooks[i]
		came := string(x.Outcome)
		if x.Outcome == schema.OK {
			came = cmp.Or(string(x.Decision), "ok")
		}
		add(true, "%s:%s", word(x.Hook), came)
	}
	if len(rec.HookErrors) > 0 {
		add(true, "error: %s", quoted(rec.HookErrors[0]))
		add(len(rec.HookErrors) > 1, "and %d more", len(rec.HookErrors)-1)
	}
	add(rec.TraceID != "", "trace:%s", word(rec.TraceID))
	return all
}
