package mcp

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// look has the results in what the server said looked at.
func (v *visit) look(ctx context.Context, data []byte) (out []byte, told func(bool)) {
	none := func(bool) {}
	all, batch, err := readAnswers(data)
	if err != nil {
		return v.withhold(data, all, err), none
	}
	if len(all) == 0 {
		return data, none // the client knows best what to make of it
	}
	parts := raws(all)
	var tells []func(bool)
	changed := false
	for i := range all {
		m := &all[i]
		v.session.peer.heard(m)
		if !m.response() {
			continue
		}
		e := v.take(m.id)
		if e == nil {
			if shown := v.session.again(m.id); shown != nil && v.r.Method == http.MethodGet {
				parts[i], changed = shown, true
			}
			continue
		}
		v.session.calls.task(e.call, m)
		answer, told := v.x.Guard.after(ctx, e.call, m, v.session.calls.isOver(e))
		tells = append(tells, told)
		v.session.show(m.id, answer)
		if !bytes.Equal(answer, m.raw) {
			parts[i], changed = answer, true
		}
	}
	if !changed {
		out = data
	} else {
		out = oneOrList(parts, batch)
	}
	return out, func(ok bool) {
		for _, told := range tells {
			told(ok)
		}
	}
}

// take is the call that a response is about: of this request, or, on a stream of
// the session, of any. A client without a session has only its own.
func (v *visit) take(id jsontext.Value) *entry {
	at := place(id)
	for i, e := range v.mine {
		if e.place == at {
			v.mine = append(v.mine[:i:i], v.mine[i+1:]...)
			if v.session.calls.has(e) {
				v.session.calls.remove(e)
				return e
			}
			return nil // another stream had it
		}
	}
	if v.session.id == "" && v.r.Method != http.MethodGet {
		return nil
	}
	return v.session.calls.answered(id)
}

// withhold is what the client gets in the place of what nobody can tell how it
// would read.
func (v *visit) withhold(data []byte, all []message, why error) []byte {
	v.x.Guard.say("dropped a message of the server: %v", why)
	answers := instead(idsOf(data, all), v.take, fmt.Sprintf("agentshim dropped the server's answer: %v", why))
	switch len(answers) {
	case 0:
		return response(nil, "error", fault(-32603, "agentshim dropped a message of the server: "+why.Error()))
	case 1:
		return answers[0]
	}
	return listOf(answers)
}
