package webhook

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

func hookOf(url string) schema.Hook {
	return schema.Hook{Name: "test", Event: schema.PreToolUse, Type: schema.HTTP, Handler: url}
}

// quiet returns a runner without a log, with these variables.
func quiet(environ ...string) *Runner {
	return New(Options{Logger: slog.New(slog.DiscardHandler), Environ: append([]string{}, environ...)})
}

// serve starts a server on loopback and returns its URL.
func serve(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// listen passes connections to a port on loopback to talk, closes them afterwards, and
// returns the port's URL.
func listen(t *testing.T, talk func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go talk(conn)
		}
	}()
	return "http://" + l.Addr().String()
}

// load loads the handler of h with a runner that ends with the test.
func load(t testing.TB, r *Runner, h schema.Hook, dirs ...string) *handler {
	t.Helper()
	t.Cleanup(func() { _ = r.Close() })
	loaded, err := r.Load(h, workers.Site{Dirs: dirs})
	if err != nil {
		t.Fatal(err)
	}
	return loaded.(*handler)
}

// handle sends one request about a tool call to the server at url.
func handle(t *testing.T, url string) (schema.Result, error) {
	t.Helper()
	return load(t, quiet(), hookOf(url)).Handle(t.Context(), runnertest.Event("Bash"))
}

func reply(w http.ResponseWriter, answer string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

// expectError checks the text of an error.
func expectError(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
}

// actors returns a server with the suite's hooks, by path.
func actors() http.HandlerFunc {
	mux := http.NewServeMux()
	mux.HandleFunc("/answers", func(w http.ResponseWriter, _ *http.Request) { reply(w, `{"decision":"allow"}`) })
	mux.HandleFunc("/refuses", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, runnertest.Reason, http.StatusUnprocessableEntity)
	})
	mux.HandleFunc("/rewrites", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, `{"updated_input":`+runnertest.NewInput+`}`)
	})
	mux.HandleFunc("/echoes", echo)
	mux.HandleFunc("/crashes", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/floods", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat(" ", 4<<10)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/junk", func(w http.ResponseWriter, _ *http.Request) { reply(w, `fine`) })
	mux.HandleFunc("/unknown", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, `{"error":"no database","reason":"no database"}`)
	})
	mux.HandleFunc("/hangs", hang)
	return mux.ServeHTTP
}

// echo injects the name of the event's tool.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var e schema.Event
	if err := schema.Unmarshal(body, &e); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := schema.Marshal(schema.Injected(e.ToolName, schema.UserMessage))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	reply(w, string(answer))
}

// hang holds the lifeline in the URL until the request is cancelled.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // a server detects the client's end only after it has read all
	f, err := os.OpenFile(r.URL.Query().Get("lifeline"), os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString("x")
	<-r.Context().Done()
}

func suite(url string, complete func(schema.Hook) schema.Hook, dirs ...string) runnertest.Suite {
	hook := func(path string) schema.Hook { return complete(hookOf(url + path)) }
	return runnertest.Suite{
		New:     func(*testing.T) workers.Runner { return quiet() },
		Dirs:    dirs,
		Answers: hook("/answers"), Refuses: hook("/refuses"), Rewrites: hook("/rewrites"), Echoes: hook("/echoes"),
		Crashes: hook("/crashes"), Floods: hook("/floods"), Junk: hook("/junk"), Unknown: hook("/unknown"), Missing: hookOf("policy.example/hook"),
		Hangs: func(_ *testing.T, l *runnertest.Lifeline) schema.Hook { return hook("/hangs?lifeline=" + l.Path) },
	}
}

func TestRunnerIsARunner(t *testing.T) {
	runnertest.Run(t, suite(serve(t, actors()), func(h schema.Hook) schema.Hook { return h }))
}

func TestRunnerOverHTTP2IsARunner(t *testing.T) {
	url, dir := serveTLS(t, actors(), nil)
	runnertest.Run(t, suite(url, func(h schema.Hook) schema.Hook {
		h.TLS.CA = "ca.pem"
		return h
	}, dir))
}
