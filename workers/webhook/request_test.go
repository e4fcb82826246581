package webhook

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

const testKey = "0123456789abcdef"

func TestARequestHasTheEventAndTheHooksHeaders(t *testing.T) {
	var method, path string
	var header http.Header
	var body []byte
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		method, path, header = r.Method, r.URL.String(), r.Header
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	})
	hook := hookOf(url + "/hook?tenant=a%20b")
	hook.Headers = map[string]string{"authorization": "Bearer ${POLICY_TOKEN}", "X-Team": " platform ", "X-Price": "$$5 ${A}${B}", "User-Agent": "mine"}
	h := load(t, quiet("POLICY_TOKEN=t0ken", "A=${B}", "B=$$"), hook)
	e := runnertest.Event("Bash")
	place := trace.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1")
	if _, err := h.Handle(trace.With(t.Context(), place), e); err != nil {
		t.Fatal(err)
	}
	want := []byte(`{"session_id":"session-1","orchestrator_id":"orchestrator-1","timestamp":null,"tool_name":"Bash","tool_input":{"command":"rm -rf /tmp/x"},` +
		`"tool_output":null,"hook_type":"PreToolUse","event_id":"` + e.EventID + `","agent_id":"agent-1","cwd":"/home/dev/project"}`)
	if method != "POST" || path != "/hook?tenant=a%20b" || !bytes.Equal(body, want) {
		t.Errorf("%s %s\n%s", method, path, body)
	}
	if diff := cmp.Diff(http.Header{
		"Accept": {"application/json"}, "Content-Type": {"application/json"}, "User-Agent": {"mine"}, "Content-Length": header["Content-Length"],
		"Hook-Id": {e.EventID}, "Hook-Event": {"PreToolUse"}, "Traceparent": {place.Parent()}, "Tracestate": {"vendor=1"},
		"Authorization": {"Bearer t0ken"}, "X-Team": {"platform"}, "X-Price": {"$5 ${B}$$"},
	}, header); diff != "" {
		t.Errorf("the headers differ (-want +got):\n%s", diff)
	}
}

func TestARequestNamesTheRelease(t *testing.T) {
	var agent string
	if _, err := handle(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
		w.WriteHeader(http.StatusNoContent)
	})); err != nil || agent != "hookfabric/"+schema.Release {
		t.Errorf("the User-Agent is %q, error %v", agent, err)
	}
}

func TestSignAddsASignature(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := Verify(r.Header, body, []byte(testKey), time.Now(), time.Minute); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	signed := hookOf(url)
	signed.Sign = "POLICY_KEY"
	if _, err := load(t, quiet("POLICY_KEY="+testKey), signed).Handle(t.Context(), runnertest.Event("Bash")); err != nil {
		t.Error(err)
	}
	_, err := load(t, quiet("POLICY_KEY=another key, as long"), signed).Handle(t.Context(), runnertest.Event("Bash"))
	expectError(t, err, "the status 401 Unauthorized", "signature does not match")
	_, err = load(t, quiet(), hookOf(url)).Handle(t.Context(), runnertest.Event("Bash"))
	expectError(t, err, "the status 401 Unauthorized", "is not signed")
}

func TestATooLargeEventIsNotSent(t *testing.T) {
	const most = schema.MaxEvent + 128 // for members that are always there
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if n != most {
			t.Errorf("%d bytes were sent", n)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	h := load(t, quiet(), hookOf(url))
	e := runnertest.Event("Bash")
	e.Prompt = "x"
	in, err := workers.NewInput(e)
	if err != nil {
		t.Fatal(err)
	}
	small, err := schema.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	e.Prompt = strings.Repeat("x", most-len(small)+1)
	if _, err := h.Handle(t.Context(), e); err != nil {
		t.Error(err)
	}
	e.Prompt += "x"
	_, err = h.Handle(t.Context(), e)
	expectError(t, err, "the event has 8323201 bytes; the limit is 8323200 for "+url)
}

func TestAnInvalidEventIsAnError(t *testing.T) {
	e := runnertest.Event("Bash")
	e.ToolInput = jsontext.Value(`{"command":`)
	_, err := load(t, quiet(), hookOf("http://127.0.0.1:1")).Handle(t.Context(), e)
	expectError(t, err, "encoding the event as JSON")
}

func TestTheErrorNamesAMissingServer(t *testing.T) {
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, err := handle(t, "http://127.0.0.1:1/hook?token=abc")
	expectError(t, err, "http://127.0.0.1:1/hook could not be asked", "refused")
	if strings.Contains(err.Error(), "abc") {
		t.Errorf("the error contains the query: %v", err)
	}
	_, err = handle(t, strings.Replace(url, "http://", "https://", 1))
	expectError(t, err, "could not be asked", "TLS handshake")
}

func TestCallsAfterCloseAreErrors(t *testing.T) {
	r := quiet()
	h := load(t, r, hookOf(serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was asked") })))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := h.Handle(t.Context(), runnertest.Event("Bash"))
	expectError(t, err, "got no request: the worker is stopping")
}

func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	for name, s := range map[string]string{"http": "http://policy.example", "https": "https://policy.example"} {
		if p := load(t, quiet(), hookOf(s)).pool; p.Proxy != nil {
			t.Errorf("%s: there is a proxy", name)
		}
	}
}

// secrets are values that must not be shown.
var secrets = []string{"tok-abcdefgh", "tok-abcdefghijkl", "key-0123456789abcdef"}

func TestSecretsAreInNoErrorReasonOrLog(t *testing.T) {
	echo := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://"+r.Header.Get("X-Long")+".example/")
			w.Header().Set("Content-Type", "text/"+r.Header.Get("X-Long"))
			w.WriteHeader(status)
			for _, s := range secrets {
				_, _ = io.WriteString(w, s+" ")
			}
			_, _ = io.WriteString(w, r.Header.Get("Authorization"))
		}
	}
	for _, status := range []int{200, 302, 401, 422, 500} {
		var log bytes.Buffer
		r := New(Options{
			Logger:  slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Environ: []string{"SHORT=" + secrets[0], "LONG=" + secrets[1], "KEY=" + secrets[2]},
		})
		hook := hookOf(serve(t, echo(status)))
		hook.Sign, hook.Headers = "KEY", map[string]string{"Authorization": "Bearer ${SHORT}", "X-Long": "${LONG}"}
		got, err := load(t, r, hook).Handle(t.Context(), runnertest.Event("Bash"))
		text := got.Reason + log.String()
		if err != nil {
			text += err.Error()
		}
		for _, s := range append(secrets, "ijkl") {
			if strings.Contains(text, s) {
				t.Errorf("%d: the text contains %s: %s", status, s, text)
			}
		}
		if !strings.Contains(text, "(secret)") {
			t.Errorf("%d: no secret was removed from: %s", status, text)
		}
	}
}

func TestSecretsAreInNoAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"as the reason":      `{"decision":"deny","reason":"$"}`,
		"as its own error":   `{"hook_errors":["$"]}`,
		"where a fault lies": `{"$":1,"$":2}`,
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				reply(w, strings.ReplaceAll(answer, "$", r.Header.Get("X-Token")))
			})
			hook := hookOf(url)
			hook.Headers = map[string]string{"X-Token": "${TOKEN}"}
			got, err := load(t, quiet("TOKEN= tok-abcdefgh "), hook).Handle(t.Context(), runnertest.Event("Bash"))
			text := fmt.Sprint(got.Reason, got.HookErrors, err)
			if strings.Contains(text, "abcdefgh") || !strings.Contains(text, "(secret)") {
				t.Errorf("the answer is %s", text)
			}
		})
	}
}

func BenchmarkHandle(b *testing.B) {
	url := serve(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		reply(w, `{"decision":"allow"}`)
	})
	secure, dir := serveTLS(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		reply(w, `{"decision":"allow"}`)
	}), nil)
	signed := hookOf(secure)
	signed.TLS.CA, signed.Sign = "ca.pem", "KEY"
	for _, c := range []struct {
		name string
		hook schema.Hook
	}{{"HTTP1", hookOf(url)}, {"HTTP2Signed", signed}} {
		h := load(b, quiet("KEY="+testKey), c.hook, dir)
		b.Run(c.name+"/1caller", func(b *testing.B) { benchmark(b, h, 1) })
		b.Run(c.name+"/16callers", func(b *testing.B) { benchmark(b, h, 16) })
	}
}

// benchmark makes calls from that many goroutines.
func benchmark(b *testing.B, h workers.Handler, callers int) {
	b.ReportAllocs()
	turns := make(chan struct{})
	ended := make(chan struct{})
	for range callers {
		go func() {
			defer func() { ended <- struct{}{} }()
			e := runnertest.Event("Bash")
			for range turns {
				if _, err := h.Handle(b.Context(), e); err != nil {
					b.Error(err)
				}
			}
		}()
	}
	for b.Loop() {
		turns <- struct{}{}
	}
	close(turns)
	for range callers {
		<-ended
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
