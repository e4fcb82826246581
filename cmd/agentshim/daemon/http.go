package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/peer"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/session"
	"github.com/hookfabric/hookfabric/schema"
)

// DefaultHTTP is the default address of the HTTP endpoint.
const DefaultHTTP = "127.0.0.1:7717"

const (
	leftHeader = "Hook-Left" // the time that the client still waits
	idHeader   = "Hook-Id"   // the event's id, also if the client must ask the fabric itself
)

// Handler is the HTTP endpoint:
//
//	POST /hook/{runtime}/{event}  the runtime's own payload; its answer
//	POST /v1/events/{event}       an event in the fabric's form; a verdict (?render=FORMAT: and messages; ?deliver=none: nothing
//	                              that waits; ?ack=explicit: the loop will say by /v1/ack what it has)
//	GET  /v1/needs?agent=A        {"config_version", "history"}: the events at which some hook needs the conversation
//	POST /v1/ack                  {"agent_id", "event_ids"}: the agent has the answers
//	POST /v1/mode                 {"agent_id", "vote_only"}: how others' answers reach the agent; absent vote_only: it is only shown
//	POST /v1/checkpoint           {"agent_id"}: the agent starts again, and gets what was deferred until then
//	POST /v1/render?format=F      {"messages", "tools"}: a conversation; what belongs into the request of that API
//	POST /v1/read?format=F        the answer of that API; the model's message
//	GET  /v1/status
//
// Every request needs the token. A browser cannot reach it: what names
// another host than this machine, or comes from a page, is refused.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook/{runtime}/{event}", s.postHook)
	mux.HandleFunc("POST /v1/events/{event}", s.postEvent)
	mux.HandleFunc("POST /v1/ack", posted(`{"agent_id": "…", "event_ids": ["…"]}`, func(ctx context.Context, m *loopMessage) (any, error) {
		return map[string]int{"acknowledged": s.loops.acknowledges(ctx, m.Agent, m.Events)}, nil
	}))
	mux.HandleFunc("POST /v1/mode", posted(`{"agent_id": "…"}`, func(ctx context.Context, m *loopMessage) (any, error) {
		return s.opt.Judge.Mode(ctx, m.Agent, m.VoteOnly)
	}))
	mux.HandleFunc("POST /v1/checkpoint", posted(`{"agent_id": "…"}`, func(ctx context.Context, m *loopMessage) (any, error) {
		return struct{}{}, s.opt.Judge.Checkpoint(ctx, m.Agent)
	}))
	large := make(chan struct{}, largeBodies)
	mux.HandleFunc("POST /v1/render", rendering(large, render.RequestOf))
	mux.HandleFunc("POST /v1/read", rendering(large, render.MessageOf))
	mux.HandleFunc("GET /v1/needs", s.getNeeds)
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, s.Status()) })
	return s.guarded(mux)
}

// guarded accepts requests with the secret, and counts them.
func (s *Server) guarded(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + s.opt.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		switch {
		case !peer.IsLocal(r.Host): // a web page's request names its own domain
			fault(w, http.StatusForbidden, "the Host header names another machine; use http://127.0.0.1 and the daemon's port")
		case r.Header.Get("Origin") != "":
			fault(w, http.StatusForbidden, "the daemon does not answer browser pages")
		case s.opt.Token == "" || subtle.ConstantTimeCompare(got[:], want[:]) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			fault(w, http.StatusUnauthorized, "the token is missing or wrong; send the header Authorization: Bearer TOKEN, with the token from daemon.token in the daemon's state folder")
		case s.active.Load() >= maxCalls:
			fault(w, http.StatusServiceUnavailable, "the daemon already has its maximum of calls under way")
		default:
			s.begin()
			defer s.end()
			next.ServeHTTP(w, r)
		}
	})
}

// fault answers a request that cannot be judged. No runtime takes it for a verdict.
func fault(w http.ResponseWriter, code int, why string) {
	http.Error(w, "agentshim: "+why, code)
}

func answerJSON(w http.ResponseWriter, v any) {
	body, err := schema.Marshal(v)
	if err != nil {
		fault(w, http.StatusInternalServerError, err.Error())
		return
	}
	answer(w, http.StatusOK, body)
}

// answer writes a whole response at once, and reports whether that succeeded.
func answer(w http.ResponseWriter, code int, body []byte) bool {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(code)
	if _, err := w.Write(body); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}

// awaits reports whether the client still waits. Writing to a closed connection may appear to succeed.
func awaits(r *http.Request) bool { return r.Context().Err() == nil }

type door struct {
	settings session.Settings
	left     time.Duration
	payload  []byte
	unread   error
	large    int64 // the body's share of maxLarge
}

// open reads the settings and the body of a request. A body that it cannot read is judged as unreadable.
func (s *Server) open(w http.ResponseWriter, r *http.Request, runtime string) (d door, ok bool) {
	q := r.URL.Query()
	settings, err := s.settings(&Request{Runtime: runtime, Event: r.PathValue("event"), Agent: q.Get("agent"),
		Unreachable: q.Get("unreachable"), Workspaces: q.Get("workspaces"), EventID: r.Header.Get(idHeader), Env: placeIn(r.Header)})
	if err != nil {
		fault(w, http.StatusNotFound, err.Error())
		return d, false
	}
	settings.Mute = q.Get("deliver") == "none"
	if err := session.CheckID(settings.EventID); err != nil {
		fault(w, http.StatusBadRequest, idHeader+": "+err.Error())
		return d, false
	}
	d = door{settings: settings, left: settings.Moment.Timeout}
	if left := r.Header.Get(leftHeader); left != "" {
		if d.left, err = time.ParseDuration(left); err != nil || d.left <= 0 {
			fault(w, http.StatusBadRequest, fmt.Sprintf("the header %s is %.20q; write a duration such as 30s", leftHeader, left))
			return d, false
		}
	}
	if d.left <= 0 {
		d.left = defaultLeft
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(min(d.left/2, firstWord)))
	_ = control.SetWriteDeadline(time.Now().Add(min(d.left, longest) + patience))
	s.read(w, r, &d)
	return d, true
}

// placeIn returns the environment of a request: its position in a trace.
func placeIn(h http.Header) func(name string) string {
	return func(name string) string {
		switch name {
		case dialect.TraceParent:
			return h.Get(schema.HeaderTraceparent)
		case dialect.TraceState:
			return h.Get(schema.HeaderTracestate)
		}
		return ""
	}
}

// read reads the body, which may include a conversation if its length is known. The caller closes d.
func (s *Server) read(w http.ResponseWriter, r *http.Request, d *door) {
	most := int64(schema.MaxEvent)
	if n := r.ContentLength; d.settings.Runtime == generic && n > most && n <= maxLarge/2 && s.large.TryAcquire(n) {
		most, d.large = n, n
	}
	var err error
	d.payload, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		d.unread = fmt.Errorf("reading the request: %w", err)
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			d.unread = fmt.Errorf("the request is larger than the limit of %d bytes", most)
		}
	}
}

func (s *Server) close(d *door) { s.large.Release(d.large) }

// maxLarge limits the bytes of all bodies with conversations. One has at most half of it.
const maxLarge = 2 * (schema.MaxEvent + schema.MaxHistory)

// defaultLeft is the time limit of a request if neither it nor its runtime has one.
const defaultLeft = 60 * time.Second

func (s *Server) judged(r *http.Request, d *door, one *delivery) session.Reply {
	ctx, cancel := within(context.WithoutCancel(r.Context()), d.left)
	defer cancel()
	reply, log := s.exchange(ctx, d.settings, one, d.payload, d.unread)
	if log != "" {
		s.opt.Log.Info("a call over HTTP", "runtime", d.settings.Runtime, "event", d.settings.Moment.Name, "said", strings.TrimSpace(log))
	}
	return reply
}

// postHook answers a runtime, which counts as having the answer when it is written.
func (s *Server) postHook(w http.ResponseWriter, r *http.Request) {
	d, ok := s.open(w, r, r.PathValue("runtime"))
	if !ok {
		return
	}
	defer s.close(&d)
	one := &delivery{all: s.flights}
	defer one.gone()
	reply := s.judged(r, &d, one)
	code, body := overHTTP(&d.settings, &reply)
	if awaits(r) && answer(w, code, body) {
		reply.Told()
		one.written(r.Context())
	}
}

// overHTTP converts an answer to a response. Runtimes take many faults for approval, so the body denies the
// call wherever their protocol can.
func overHTTP(x *session.Settings, r *session.Reply) (code int, body []byte) {
	faulty := r.Call == nil || r.Call.Faulty
	switch {
	case r.Exit == 0 && (!faulty || said(r)), x.Runtime == generic && said(r):
		if len(r.Stdout) == 0 {
			return http.StatusOK, []byte("{}") // some runtimes take an empty response for a fault
		}
		return http.StatusOK, r.Stdout
	case r.Exit != 0 && r.Call != nil:
		c, v := *r.Call, schema.Verdict{Decision: r.Call.Moment.Event.Blocking(), Reason: faultOf(r)}
		c.Faulty = false
		if a, err := x.Dialect.Encode(&c, &v); err == nil && a.Exit == 0 && len(a.Stdout) > 0 && v.Decision != schema.None {
			return http.StatusOK, a.Stdout
		}
	}
	if len(r.Stdout) > 0 {
		return http.StatusBadRequest, r.Stdout
	}
	why, _ := schema.Marshal(map[string]string{"error": "the daemon could not judge the call: " + faultOf(r)})
	return http.StatusInternalServerError, why
}

// faultOf returns the reason why a call could not be judged as it was.
func faultOf(r *session.Reply) string {
	if said := strings.TrimSpace(r.Answer.Stderr); said != "" || r.Verdict == nil {
		return said
	}
	return strings.Join(r.Verdict.HookErrors, "; ")
}

// said reports whether an answer denies the call, which also answers an unreadable payload.
func said(r *session.Reply) bool {
	return r.Verdict != nil && r.Call != nil && (r.Call.Event.HookType.Terminal(r.Verdict.Decision) || r.Call.Event.HookType.Blocks(r.Verdict.Decision))
}

const generic = "generic"
