package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

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

// remember keeps the items that a loop was sent until it acknowledges them.
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
func renders(f render.Format, d *door) error {
	if f == "" {
		return nil
	}
	e, _ := schema.ReadEvent(d.payload)
	if e == nil {
		return nil
	}
	e.HookType = d.settings.Moment.Event
	return render.Fits(f, e)
}

// An envelope is the answer to a loop: the verdict, the id that acknowledges it, and messages of an API.
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

// loopTime limits how long the fabric may take for a message of a loop, and maxLoopMessage its size.
const (
	loopTime       = 5 * time.Second
	maxLoopMessage = 1 << 20
)

// A loopMessage is what an agent's loop sends about its agent, apart from events.
type loopMessage struct {
	Agent    string   `json:"agent_id"`
	Events   []string `json:"event_ids"`
	VoteOnly *bool    `json:"vote_only"`
}

// posted returns a handler for messages of a loop. form is an example of a complete one.
func posted(form string, do func(context.Context, *loopMessage) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var m loopMessage
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLoopMessage))
		if err == nil {
			err = schema.Unmarshal(body, &m)
		}
		if err == nil && (m.Agent == "" || len(m.Events) == 0 && strings.Contains(form, "event_ids")) {
			err = errors.New("write " + form)
		}
		if err != nil {
			fault(w, http.StatusBadRequest, "reading the request: "+err.Error())
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), loopTime)
		defer cancel()
		said, err := do(ctx, &m)
		if err != nil {
			fault(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		answerJSON(w, said)
	}
}

// needsTime limits how long the judge may take to find out which events need the conversation.
const needsTime = 2 * time.Second

// getNeeds returns the events at which an agent's loop must send its conversation.
func (s *Server) getNeeds(w http.ResponseWriter, r *http.Request) {
	agent := r.URL.Query().Get("agent")
	if agent == "" {
		fault(w, http.StatusBadRequest, "the agent is missing; write ?agent= and the agent's id")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), needsTime)
	defer cancel()
	needs, err := s.opt.Judge.Needs(ctx, agent)
	if err != nil {
		fault(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answerJSON(w, needs)
}

const (
	// maxLoops limits the agents, and maxAnswers the answers of one. The fabric sends dropped items again.
	maxLoops   = 10_000
	maxAnswers = 64
)

// loops remembers the items that loops got over HTTP and have not acknowledged. A loop acknowledges with
// /v1/ack, or, if it never did so and does not ask with ?ack=explicit, with its next request.
type loops struct {
	mu      sync.Mutex // guards what follows
	byAgent map[string]*loop
	order   []string // agents, oldest first
}

type loop struct {
	explicit bool // the loop uses /v1/ack
	answers  []answered
}

// answered is a call whose answer may still be on its way.
type answered struct {
	events []string // its ids
	told   func(context.Context)
}

// of returns an agent's loop and creates it if needed. The caller holds the lock.
func (l *loops) of(agent string) *loop {
	one := l.byAgent[agent]
	if one == nil {
		if len(l.order) >= maxLoops {
			delete(l.byAgent, l.order[0])
			l.order = l.order[1:]
		}
		one = &loop{}
		l.byAgent[agent] = one
		l.order = append(l.order, agent)
	}
	return one
}

// asks records that an agent sends another request. explicit: it will use /v1/ack.
func (l *loops) asks(ctx context.Context, agent string, explicit bool) {
	l.mu.Lock()
	var had []answered
	if explicit {
		l.of(agent).explicit = true
	} else if one := l.byAgent[agent]; one != nil && !one.explicit {
		had, one.answers = one.answers, nil
	}
	l.mu.Unlock()
	tell(ctx, had)
}

func (l *loops) answered(agent string, a answered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of(agent)
	one.answers = append(one.answers, a)
	one.answers = slices.Delete(one.answers, 0, max(0, len(one.answers)-maxAnswers))
}

// acknowledges records that an agent has answers, and counts those that are known.
func (l *loops) acknowledges(ctx context.Context, agent string, events []string) int {
	l.mu.Lock()
	one := l.of(agent)
	one.explicit = true
	var had []answered
	one.answers = slices.DeleteFunc(one.answers, func(a answered) bool {
		has := slices.ContainsFunc(a.events, func(id string) bool { return slices.Contains(events, id) })
		if has {
			had = append(had, a)
		}
		return has
	})
	l.mu.Unlock()
	tell(ctx, had)
	return len(had)
}

func tell(ctx context.Context, all []answered) {
	for _, a := range all {
		a.told(ctx)
	}
}

// renderTime limits how long reading a conversation and writing the answer may take.
const renderTime = 30 * time.Second

const (
	// smallBody is the size, in bytes, up to which bodies are converted without waiting. Conversion takes
	// several times that memory, so only largeBodies larger ones are converted at a time.
	smallBody   = 1 << 20
	largeBodies = 4
)

// rendering returns a handler that converts a body to or from the format of another API.
func rendering(rooms chan struct{}, convert func(render.Format, []byte) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		format, err := render.ParseFormat(r.URL.Query().Get("format"))
		if err != nil {
			fault(w, http.StatusBadRequest, err.Error()+", as ?format=")
			return
		}
		if r.ContentLength < 0 || r.ContentLength > smallBody {
			select {
			case rooms <- struct{}{}:
				defer func() { <-rooms }()
			case <-time.After(renderTime):
				fault(w, http.StatusServiceUnavailable, "the daemon already converts its maximum of large conversations; try again later")
				return
			}
		}
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(renderTime))
		_ = control.SetWriteDeadline(time.Now().Add(2 * renderTime))
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, render.MaxInput))
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			fault(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request is larger than the limit of %d bytes", render.MaxInput))
			return
		}
		if err == nil {
			body, err = convert(format, body)
		}
		if err != nil {
			fault(w, http.StatusBadRequest, err.Error())
			return
		}
		answer(w, http.StatusOK, body)
	}
}
