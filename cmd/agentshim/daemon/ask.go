package daemon

import (
	"context"
	"errors"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
	"github.com/hookfabric/hookfabric/schema"
)

// ask has an event in the fabric's own form judged: see [Client].
func (s *Server) ask(ctx context.Context, t *talker, m *frame.Message) {
	q, err := s.question(m)
	if err != nil {
		t.elsewhere(err.Error())
		return
	}
	ctx, cancel, err := within(ctx, m.Words[wordLeft])
	if err != nil {
		t.elsewhere(err.Error())
		return
	}
	defer cancel()
	d := &delivery{all: s.flights, borrow: m.Words[wordBorrow] != ""}
	defer d.gone()
	stop := t.beating()
	j := d.Ask(ctx, q)
	stop()
	answer := &frame.Message{Kind: frame.Answer, Words: words(wordID, j.Verdict.EventID)}
	if answer.Body, err = schema.Marshal(j.Verdict); err != nil {
		t.elsewhere(err.Error())
		return
	}
	if j.Unjudged != nil {
		answer.Words[wordUnjudged] = j.Unjudged.Error()
	}
	if t.say(answer) && t.heardWritten() {
		d.written(ctx)
	}
}

// question decodes a client's request.
func (s *Server) question(m *frame.Message) (q decide.Question, err error) {
	e := new(schema.Event)
	if err := schema.Unmarshal(m.Body, e); err != nil {
		return q, err
	}
	if e.AgentID == "" || !e.HookType.Known() {
		return q, errors.New("the event names no agent, or an unknown event type")
	}
	w := m.Words
	e.Mute, e.MidTurn = w[wordMute] != "", w[wordMidTurn] != "" // the event's JSON does not contain them
	q = decide.Question{
		Event: e, Workspaces: w[wordWorkspaces], Unreachable: w[wordUnreachable],
		Key: w[wordKey], Pair: w[wordPair], ByID: w[wordByID] != "", Apart: w[wordApart],
	}
	if q.Unreachable == "" {
		q.Unreachable = s.opt.Unreachable
	}
	if w[wordNative] != "" {
		q.Native = []byte(w[wordNative])
	}
	if w[wordUnreadable] != "" {
		q.Unreadable = errors.New(w[wordUnreadable])
	}
	return q, nil
}
