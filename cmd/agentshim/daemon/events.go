package daemon

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// postEvent judges an event of an agent's own loop.
func (s *Server) postEvent(w http.ResponseWriter, r *http.Request) {
	var format render.Format
	if name := r.URL.Query().Get("render"); name != "" {
		var err error
		if format, err = render.ParseFormat(name); err != nil {
			fault(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	d, ok := s.open(w, r, generic)
	if !ok {
		return
	}
	d.settings.Loop = true
	defer s.close(&d)
	if err := renders(format, &d); err != nil {
		fault(w, http.StatusBadRequest, err.Error())
		return
	}
	explicit := r.URL.Query().Get("ack") == "explicit"
	one := &delivery{all: s.flights, asks: func(agent string) { s.loops.asks(r.Context(), agent, explicit) }}
	reply := s.judged(r, &d, one)
	code, body := overHTTP(&d.settings, &reply)
	if reply.Call == nil || reply.Verdict == nil {
		one.gone()
		answer(w, code, body)
		return
	}
	// A second delivery of one call has another id and the verdict of the first delivery.
	ids := []string{reply.Verdict.EventID, reply.Call.Event.EventID}
	if code == http.StatusOK {
		var err error
		if body, err = enveloped(format, &reply.Call.Event, envelope{EventID: ids[0]}, body); err != nil {
			one.gone()
			fault(w, http.StatusInternalServerError, err.Error())
			return
		}
	}
	if !awaits(r) || !answer(w, code, body) {
		one.gone()
		return
	}
	s.remember(reply.Call.Event.AgentID, ids, reply.Kept(), one)
}

// remember keeps the items that a loop was sent until the loop acknowledges them. It does
// not keep answers without such items, which would evict others.
func (s *Server) remember(agent string, events []string, kept func(), one *delivery) {
	if kept == nil && !queued(one.v) {
		return
	}
	s.loops.answered(agent, answered{events: events, told: func(ctx context.Context) {
		if kept != nil {
			kept()
		}
		one.written(ctx)
	}})
}

// queued reports whether a verdict has items that wait until they are acknowledged.
func queued(v *schema.Verdict) bool {
	return v != nil && (v.Restart != nil || len(v.Workspaces) > 0 || slices.ContainsFunc(v.Injections, func(i schema.Injection) bool { return i.Sequence > 0 }))
}

// renders returns an error, before the event is judged, if its result cannot be rendered.
// An event that cannot be read is judged as such.
func renders(f render.Format, d *door) error {
	if f == "" {
		return nil
	}
	e, _ := schema.ReadEvent(d.in.payload)
	if e == nil {
		return nil
	}
	e.HookType = d.settings.Moment.Event
	return render.Fits(f, e)
}

// An envelope is the answer to a loop: the verdict, the id that acknowledges it, and the
// messages of an API if the loop asked for them.
type envelope struct {
	EventID string `json:"event_id,omitzero"`
	*schema.Verdict
	*render.Messages
}

// enveloped encodes a response. An empty format means no messages.
func enveloped(f render.Format, e *schema.Event, env envelope, said []byte) ([]byte, error) {
	env.Verdict = new(schema.Verdict)
	if err := schema.Unmarshal(said, env.Verdict); err != nil {
		return nil, err
	}
	if f != "" {
		messages, err := render.Render(f, e, env.Verdict)
		if err != nil {
			return nil, fmt.Errorf("rendering the verdict: %w", err)
		}
		env.Messages = &messages
	}
	return schema.Marshal(&env)
}

// maxAck limits the size of an acknowledgement, in bytes.
const maxAck = 1 << 20

// postAck records that an agent has answers.
func (s *Server) postAck(w http.ResponseWriter, r *http.Request) {
	var ack struct {
		Agent  string   `json:"agent_id"`
		Events []string `json:"event_ids"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAck))
	if err == nil {
		err = schema.Unmarshal(body, &ack)
	}
	if err == nil && (ack.Agent == "" || len(ack.Events) == 0) {
		err = fmt.Errorf(`write {"agent_id": "…", "event_ids": ["…"]}`)
	}
	if err != nil {
		fault(w, http.StatusBadRequest, "reading the acknowledgement: "+err.Error())
		return
	}
	answerJSON(w, map[string]int{"acknowledged": s.loops.acknowledges(r.Context(), ack.Agent, ack.Events)})
}
