package llm_test

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/agent/llm"
	"github.com/hookfabric/hookfabric/bus/agent/render"
)

// endless answers without an end.
type endless struct{}

func (endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(endless{})}, nil
}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// An answer over the size limit is an error and is not requested again.
func TestAnEndlessAnswerIsAnError(t *testing.T) {
	c := called(t, llm.Options{Format: render.OpenAI, URL: "http://127.0.0.1:1", HTTP: &http.Client{Transport: endless{}}})
	if _, err := c.Call(t.Context(), ask(), nil); err == nil || !strings.Contains(err.Error(), "larger than 67108864 bytes") || strings.Contains(err.Error(), "attempts") {
		t.Errorf("%.300v", err)
	}
}

// A server with a wrong certificate gets neither conversation nor key, and is not asked
// again.
func TestAnUntrustedServerGetsNoRequest(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it got the conversation") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	c := called(t, llm.Options{Format: render.Anthropic, URL: s.URL})
	_, err := c.Call(t.Context(), ask(), nil)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || strings.Contains(err.Error(), "attempts") {
		t.Errorf("%v", err)
	}
}
