package aggregator

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// verify answers events that are malformed, or whose bodies contradict their headers.
func (j *judging) verify(e *event) bool {
	if e.Err == nil && !plain(&e.Req.Routing, e.Req.Body) {
		switch {
		case e.Charge.Over == "":
			e.Err = consistent(&e.Req.Routing, e.Req.Body)
		case e.Req.Event.Blocking() != schema.None: // else nothing is let through
			e.Err = errUnread
		}
	}
	if e.Err == nil {
		return true
	}
	j.intake.EndBeat(e.Arrival)
	e.span.Fail("malformed event")
	j.refuse(e)
	return false
}

// errUnread means that an agent over its limit sent an event whose check would need the whole body.
var errUnread = errors.New("the event could not be read")

// refuse answers an event that cannot be judged as it is. If its agent is over a limit, it costs
// no more than other events over it.
func (j *judging) refuse(e *event) {
	r := &e.Req.Routing
	agent, event, subjErr := bus.ParseEventSubject(e.Msg.Subject)
	t := e.Answered()
	t.Malformed, t.Limited, t.Wait = !errors.Is(e.Err, errUnread), e.Charge.Over, e.Charge.Wait()
	if t.Malformed {
		j.report.Metrics.Malformed.Inc()
	}
	if subjErr == nil {
		r.Agent, r.Event = agent, event
	}
	if t.Limited != "" {
		t.Shed, t.Unrecorded = true, !j.limits.Refused(r.Agent, t.Limited)
	} else {
		j.report.Log.Malformed(r, e.Msg.Subject, e.Err)
	}
	v := &e.verdict
	v.FreezeVersion = j.freezes.now().version()
	switch {
	case subjErr != nil:
		v.Decision, v.Reason, v.HookErrors = schema.Deny, subjErr.Error(), []string{subjErr.Error()}
	case !t.Malformed:
		why := j.limits.Refusal(agent, &e.Charge)
		v.HookErrors = []string{why}
		if e.Charge.Refuses() || e.act.Guards(agent, event, "") { // it may be about any tool
			v.Decision, v.Reason = event.Blocking(), why
		}
	default:
		*v = dispatch.Malformed(event, e.act.Guards(agent, event, r.Tool), e.Err)
		unread := *r
		unread.Tool = "" // it may be about any tool
		j.freezes.overtake(e.act, &unread, v)
	}
	j.answer(e, t)
}

// errNoTool means that an event does not name its tool, so that no hook can be selected.
var errNoTool = fmt.Errorf("the event is about a tool but does not name it; send the name in tool_name and in the header %s", schema.HeaderTool)

var (
	toolName = []byte(`"tool_name"`)
	// escaped begins a JSON escape that could spell a letter of a name.
	escaped = []byte(`\u00`)
)

// plain reports whether it shows without decoding the body that it names the tool that
// the header names: where its only mention of a tool's name is the header's, it is the
// header's; otherwise, and where escapes could hide a mention or a quote could end the
// name, it has to be read.
func plain(r *schema.Routing, body []byte) bool {
	mentions := bytes.Count(body, toolName)
	if mentions < 2 && (bytes.Contains(body, escaped) || strings.ContainsAny(r.Tool, `"\`)) {
		mentions = 2
	}
	switch mentions {
	case 0:
		return r.Tool == "" && !r.Event.HasTool()
	case 1:
		rest := bytes.TrimLeft(body[bytes.Index(body, toolName)+len(toolName):], " \t\r\n")
		if len(rest) > 1 && rest[0] == ':' {
			rest = bytes.TrimLeft(rest[1:], " \t\r\n")
			n := len(r.Tool)
			return len(rest) > n+1 && rest[0] == '"' && rest[n+1] == '"' && string(rest[1:n+1]) == r.Tool
		}
	}
	return false
}

// consistent returns an error if the body does not name the tool in the header, which is not plain.
// Workers read the body anyway and check again.
func consistent(r *schema.Routing, body []byte) error {
	_, err := schema.DecodeEvent(body, *r)
	if err == nil && r.Tool == "" && r.Event.HasTool() {
		return errNoTool
	}
	return err
}
