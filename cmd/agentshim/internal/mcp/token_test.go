package mcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/mcp"
)

// The relay lends its headers and its agent's name to those who show its token, and the
// server hears nothing of the token.
func TestARelayServesWhoShowsItsToken(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, fmt.Sprint(r.Method, " ", r.URL.EscapedPath(), " ", r.Header.Get("Authorization"), r.Header.Get(mcp.TokenHeader)))
	}))
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	const token = "THE-TOKEN"
	x := &mcp.Relay{Guard: &mcp.Guard{Asker: &fabric{}, Stderr: &said{}}, Target: target, Token: token, Headers: http.Header{"Authorization": {"Bearer s"}}}
	front := httptest.NewServer(x)
	t.Cleanup(front.Close)
	for name, c := range map[string]struct {
		method, path, header string
		want                 string // what reaches the server; empty: nothing
	}{
		"no token":                      {"POST", "/mcp", "", ""},
		"another token in the header":   {"POST", "/mcp", "THE-TOKEN2", ""},
		"another token in the path":     {"POST", "/THE-TOKEN2/mcp", "", ""},
		"a part of the token":           {"POST", "/THE/mcp", "", ""},
		"the token in the path":         {"POST", "/THE-TOKEN/mcp", "", "POST /mcp Bearer s"},
		"the token in the header":       {"POST", "/mcp", token, "POST /mcp Bearer s"},
		"the token and another path":    {"POST", "/THE-TOKEN/admin%2Fx", "", "POST /admin%2Fx "},
		"the token somewhere else":      {"POST", "/mcp/THE-TOKEN", "", ""},
		"a stream without the token":    {"GET", "/mcp", "", ""},
		"a stream with the token":       {"GET", "/THE-TOKEN/mcp", "", "GET /mcp Bearer s"},
		"what servers tell everyone":    {"GET", "/.well-known/oauth-authorization-server", "", "GET /.well-known/oauth-authorization-server "},
		"that of a path with the token": {"GET", "/.well-known/oauth-protected-resource/THE-TOKEN/mcp", "", "GET /.well-known/oauth-protected-resource/mcp "},
		"a change of the metadata":      {"POST", "/.well-known/x", "", ""},
		"a way out of the metadata":     {"GET", "/.well-known/../mcp", "", ""},
		"an encoded way out of it":      {"GET", "/.well-known/%2e%2e/mcp", "", ""},
		"a token in a query":            {"POST", "/mcp?token=THE-TOKEN", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			var headers []string
			if c.header != "" {
				headers = []string{mcp.TokenHeader, c.header}
			}
			res, body := request(t, c.method, front.URL+c.path, map[string]string{"POST": ping}[c.method], headers...)
			if strings.Join(got, ", ") != c.want {
				t.Errorf("the server got %q", got)
			}
			if c.want == "" && (res.StatusCode != http.StatusForbidden || !strings.Contains(body, mcp.TokenHeader)) {
				t.Errorf("%d %s", res.StatusCode, body)
			}
		})
	}
}
