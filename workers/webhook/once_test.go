package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// noOpinion is a complete answer over HTTP/1.1.
const noOpinion = "HTTP/1.1 204 No Content\r\n\r\n"

// take reads one whole request and reports whether there was one.
func take(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

func TestAServerThatClosesAfterReadingGetsOneRequestPerCall(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		for answered := range 3 { // before it closes, on one connection
			t.Run(fmt.Sprintf("idempotent %t, on request %d", idempotent, answered+1), func(t *testing.T) {
				var requests, connections atomic.Int32
				url := listen(t, func(conn net.Conn) {
					defer conn.Close()
					connections.Add(1)
					r := bufio.NewReader(conn)
					for n := 0; take(r); n++ {
						if requests.Add(1); n == answered {
							return
						}
						_, _ = io.WriteString(conn, noOpinion)
					}
				})
				hook := hookOf(url)
				hook.Idempotent = idempotent
				h := load(t, quiet(), hook)
				for range answered {
					if _, err := h.Handle(t.Context(), runnertest.Event("Bash")); err != nil {
						t.Fatal(err)
					}
				}
				_, err := h.Handle(t.Context(), runnertest.Event("Bash"))
				expectError(t, err, url)
				if n := requests.Load(); int(n) != answered+1 {
					t.Errorf("%d calls were %d requests", answered+1, n)
				}
				if n := connections.Load(); n != 1 {
					t.Errorf("%d connections", n)
				}
			})
		}
	}
}

func TestAConnectionClosedByTheServerIsReplaced(t *testing.T) {
	noticed := make(chan struct{}, 1)
	url := listen(t, func(conn net.Conn) {
		defer conn.Close()
		r := bufio.NewReader(conn)
		if !take(r) {
			return
		}
		_, _ = io.WriteString(conn, noOpinion)
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = r.ReadByte() // until the client has closed it, too
		noticed <- struct{}{}
	})
	h := load(t, quiet(), hookOf(url))
	for range 3 {
		if _, err := h.Handle(t.Context(), runnertest.Event("Bash")); err != nil {
			t.Fatal(err)
		}
		<-noticed
	}
}

// stale is a connection that fails every write after the first request.
type stale struct {
	net.Conn
	writes int
}

func (c *stale) Write(b []byte) (int, error) {
	if c.writes++; c.writes > 1 {
		return 0, errors.New("broken")
	}
	return c.Conn.Write(b)
}

func TestAnUnsentRequestUsesANewConnection(t *testing.T) {
	var requests atomic.Int32
	h := load(t, quiet(), hookOf(serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusNoContent)
	})))
	dial, dials := h.pool.DialContext, 0
	h.pool.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if dials++; dials == 1 {
			return &stale{Conn: conn}, err
		}
		return conn, err
	}
	for range 3 {
		if _, err := h.Handle(t.Context(), runnertest.Event("Bash")); err != nil {
			t.Fatal(err)
		}
	}
	if n := requests.Load(); n != 3 || dials != 2 {
		t.Errorf("3 calls were %d requests over %d connections; want 3 over 2", n, dials)
	}
}

// Types of HTTP/2 frames, and error codes of resets.
const (
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4

	protocolError = 1
	refusedStream = 7
)

// frame encodes an HTTP/2 frame: RFC 9113, section 4.1.
func frame(kind, flags byte, stream uint32, payload ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = binary.BigEndian.AppendUint32(append(b, flags), stream)
	return append(b, payload...)
}

// resets is a minimal HTTP/2 server. It resets the first streams with a code, and answers
// later ones with 204.
func resets(conn net.Conn, code byte, first int32, requests *atomic.Int32) {
	defer conn.Close()
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	_, _ = conn.Write(frame(frameSettings, 0, 0))
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		size := int64(binary.BigEndian.Uint32(head) >> 8)
		if _, err := io.CopyN(io.Discard, conn, size); err != nil {
			return
		}
		stream := binary.BigEndian.Uint32(head[5:])
		switch kind, flags := head[3], head[4]; {
		case kind == frameSettings && flags == 0:
			_, _ = conn.Write(frame(frameSettings, 1, 0))
		case kind == frameHeaders && requests.Add(1) <= first:
			_, _ = conn.Write(frame(frameReset, 0, stream, 0, 0, 0, code))
		case kind == frameHeaders:
			_, _ = conn.Write(frame(frameHeaders, 4|1, stream, 0x89)) // the end of the headers and of the stream; ":status: 204"
		}
	}
}

func TestOverHTTP2OnlyIdempotentHooksAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		idempotent bool
		code       byte
		first      int32
		requests   int32
		answered   bool
	}{
		"a request that was not refused":                {code: refusedStream, requests: 1, answered: true},
		"a refused request":                             {code: refusedStream, first: 1, requests: 1},
		"a refused request of an idempotent hook":       {code: refusedStream, first: 1, requests: 2, idempotent: true, answered: true},
		"a twice refused request of an idempotent hook": {code: refusedStream, first: 9, requests: 2, idempotent: true},
		"a request with a protocol error":               {code: protocolError, first: 1, requests: 1},
		"a protocol error of an idempotent hook":        {code: protocolError, first: 9, requests: 2, idempotent: true},
		"another error of an idempotent hook":           {code: 2, first: 1, requests: 1, idempotent: true},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			url, dir := serveTLS(t, nil, func(s *httptest.Server, _ *authority) {
				s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
					"h2": func(_ *http.Server, conn *tls.Conn, _ http.Handler) { resets(conn, c.code, c.first, &requests) },
				}
				s.TLS.NextProtos, s.EnableHTTP2 = []string{"h2"}, false
			})
			hook := hookOf(url)
			hook.Idempotent, hook.TLS = c.idempotent, schema.TLS{CA: "ca.pem"}
			_, err := load(t, quiet(), hook, dir).Handle(t.Context(), runnertest.Event("Bash"))
			if (err == nil) != c.answered {
				t.Errorf("error %v", err)
			}
			if n := requests.Load(); n != c.requests {
				t.Errorf("one call was %d requests; want %d", n, c.requests)
			}
		})
	}
}

func TestConnectionsAreReusedAndLimited(t *testing.T) {
	var made atomic.Int32
	var arrived sync.WaitGroup
	arrived.Add(maxConns)
	first := make(chan struct{}, maxConns)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case first <- struct{}{}: // hold as many as permitted
			arrived.Done()
			arrived.Wait()
		default:
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	h := load(t, quiet(), hookOf(s.URL))
	var calls sync.WaitGroup
	for range 3 * maxConns {
		calls.Go(func() {
			if _, err := h.Handle(t.Context(), runnertest.Event("Bash")); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := made.Load(); n != maxConns {
		t.Errorf("%d calls made %d connections; want %d", 3*maxConns, n, maxConns)
	}
}

func TestClosingAHandlerClosesItsConnections(t *testing.T) {
	gone := make(chan struct{})
	url := listen(t, func(conn net.Conn) {
		defer conn.Close()
		r := bufio.NewReader(conn)
		for take(r) {
			_, _ = io.WriteString(conn, noOpinion)
		}
		close(gone)
	})
	h := load(t, quiet(), hookOf(url))
	h.pool.IdleConnTimeout = 0 // no limit, so that only Close ends it
	if _, err := h.Handle(t.Context(), runnertest.Event("Bash")); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	<-gone
}
