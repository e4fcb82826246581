package webhook

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

const target = "https://policy.example/hook"

// with returns a hook with one header.
func with(name, value string) schema.Hook {
	return schema.Hook{Handler: target, Headers: map[string]string{name: value}}
}

func TestLoadErrorsOfWebhooks(t *testing.T) {
	for name, c := range map[string]struct {
		hook schema.Hook
		want []string
	}{
		"nothing":               {schema.Hook{}, []string{`""`, "https://policy.example/hook"}},
		"a host alone":          {schema.Hook{Handler: "policy.example"}, []string{`"policy.example" is not a server's URL`}},
		"a host and its port":   {schema.Hook{Handler: "policy.example:80"}, []string{"is not a server's URL"}},
		"another scheme":        {schema.Hook{Handler: "ftp://policy.example/?k=geheim"}, []string{`"ftp://policy.example/" is not a server's URL`}},
		"no host":               {schema.Hook{Handler: "https:///hook"}, []string{`"https:///hook" names no host`}},
		"a port without host":   {schema.Hook{Handler: "https://:8443/hook"}, []string{"names no host"}},
		"no slashes":            {schema.Hook{Handler: "https:policy.example"}, []string{"names no host"}},
		"a control character":   {schema.Hook{Handler: "https://policy.example/\n"}, []string{`"https://policy.example/\n" is not a server's URL`}},
		"a user":                {schema.Hook{Handler: "https://me:geheim@policy.example"}, []string{`"Basic ${POLICY_LOGIN}"`}},
		"a user and nonsense":   {schema.Hook{Handler: "https://me:geheim@policy.example:x"}, []string{`"Basic ${POLICY_LOGIN}"`}},
		"a fragment":            {schema.Hook{Handler: target + "#top"}, []string{"fragment"}},
		"an empty fragment":     {schema.Hook{Handler: target + "#"}, []string{"fragment"}},
		"an invalid port":       {schema.Hook{Handler: "https://policy.example:70000/hook"}, []string{"the port 70000; write one from 1 to 65535"}},
		"the port zero":         {schema.Hook{Handler: "https://policy.example:0/hook"}, []string{"the port 0"}},
		"shell":                 {schema.Hook{Handler: target, Shell: true}, []string{"shell, args, env and options are not for http hooks"}},
		"args":                  {schema.Hook{Handler: target, Args: []string{"x"}}, []string{"headers"}},
		"env":                   {schema.Hook{Handler: target, Env: []string{"X"}}, []string{"headers"}},
		"options":               {schema.Hook{Handler: target, Options: map[string]any{"x": 1}}, []string{"headers"}},
		"a header's empty name": {with("", "x"), []string{`"" is not a header name`}},
		"a header with a blank": {with("X Team", "x"), []string{`"X Team" is not a header name`, "X-Team"}},
		"a header with umlauts": {with("X-Größe", "x"), []string{"is not a header name"}},
		"the host":              {with("host", "x"), []string{"a hook cannot set the header host; write the host in the handler's URL"}},
		"a length":              {with("Content-Length", "5"), []string{"plain JSON"}},
		"a type":                {with("Content-Type", "text/plain"), []string{"plain JSON"}},
		"compression":           {with("Accept-Encoding", "gzip"), []string{"plain JSON"}},
		"the connection":        {with("CONNECTION", "close"), []string{"controls the connection"}},
		"chunks":                {with("transfer-encoding", "chunked"), []string{"controls the connection"}},
		"an expectation":        {with("Expect", "100-continue"), []string{"controls the connection"}},
		"a proxy's password":    {with("Proxy-Authorization", "Basic geheim"), []string{"uses no proxy"}},
		"a place in a trace":    {with("traceparent", "geheim"), []string{"the worker sends it with traced calls"}},
		"a key to repeat":       {with("Idempotency-Key", "geheim"), []string{"read Hook-Id"}},
		"another of those":      {with("x-idempotency-key", "geheim"), []string{"read Hook-Id"}},
		"the fabric's own":      {with("Hook-Signature", "v1=geheim"), []string{"begins with neither Hook- nor"}},
		"two of a name": {schema.Hook{Handler: target, Headers: map[string]string{"X-Team": "a", "x-team": "b"}},
			[]string{"the headers X-Team and x-team are the same header"}},
		"a line break":         {with("X-Team", "geheim\r\nX-Admin: yes"), []string{"the header X-Team", "line break"}},
		"a NUL byte":           {with("X-Team", "geheim\x00"), []string{"control character"}},
		"a variable's break":   {with("X-Team", "${BROKEN}"), []string{"the header X-Team", "as one line"}},
		"a long value":         {with("X-Team", strings.Repeat("geheim", 1000)), []string{"more than 4096 bytes"}},
		"a long variable":      {with("X-Team", strings.Repeat("${LONG}", 1000)), []string{"more than 4096 bytes"}},
		"a missing variable":   {with("X-Team", "${MISSING}"), []string{"the header X-Team", "variable MISSING is unset"}},
		"an empty variable":    {with("X-Team", "geheim ${EMPTY}"), []string{"variable EMPTY is unset or empty"}},
		"a lone dollar":        {with("X-Team", "$geheim"), []string{"write ${NAME} for a variable", "$$ for a dollar sign"}},
		"a dollar at the end":  {with("X-Team", "geheim$"), []string{"$$ for a dollar sign"}},
		"a brace that is open": {with("X-Team", "${geheim"), []string{"${NAME}"}},
		"an invalid name":      {with("X-Team", "${geheim-1}"), []string{"letters, digits and _"}},
		"a name from a digit":  {with("X-Team", "${1geheim}"), []string{"${NAME}"}},
		"no name":              {with("X-Team", "${}"), []string{"${NAME}"}},
		"a missing key":        {schema.Hook{Handler: target, Sign: "MISSING"}, []string{"sign:", "variable MISSING is unset"}},
		"an empty key":         {schema.Hook{Handler: target, Sign: "EMPTY"}, []string{"sign:", "variable EMPTY"}},
		"a short key":          {schema.Hook{Handler: target, Sign: "SHORT"}, []string{"the key in the worker's environment variable SHORT has 15 bytes", "at least 16"}},
		"a key in the file":    {schema.Hook{Handler: target, Sign: "geheim/0123456789"}, []string{"sign is not the name", "not the key"}},
		"TLS without TLS":      {schema.Hook{Handler: "http://127.0.0.1/", TLS: schema.TLS{CA: "ca.pem"}}, []string{"write https://, or"}},
		"a key in clear":       {schema.Hook{Handler: "http://policy.example/?k=geheim", Sign: "KEY"}, []string{"unencrypted to http://policy.example/;", "write https://"}},
		"a variable in clear":  {schema.Hook{Handler: "http://10.0.0.1/", Headers: map[string]string{"X": "${KEY}"}}, []string{"unencrypted"}},
		"a name that only looks like this machine": {schema.Hook{Handler: "http://localhost.example/", Sign: "KEY"}, []string{"unencrypted"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := quiet("EMPTY=", "BROKEN=geheim\n", "LONG="+strings.Repeat("geheim", 100), "SHORT=geheim-90123456"[:len("SHORT=")+15], "KEY=geheim-7890123456")
			defer r.Close()
			h, err := r.Load(c.hook, workers.Site{})
			if h != nil {
				t.Error("there is a handler")
			}
			expectError(t, err, c.want...)
			if err != nil && strings.Contains(err.Error(), "geheim") && !strings.Contains(c.hook.Handler+name, "geheim") {
				t.Errorf("the error contains a secret: %v", err)
			}
		})
	}
}

func TestSecretsDoNotLeaveTheMachineOverPlainHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		handler string
		secret  bool
		warns   bool
	}{
		"https needs no warning":            {handler: target},
		"https may carry secrets":           {handler: target, secret: true},
		"this machine needs no warning":     {handler: "http://127.0.0.1:8080/hook"},
		"this machine may get secrets":      {handler: "http://localhost/hook", secret: true},
		"this machine has more addresses":   {handler: "http://[::1]:8080/hook", secret: true},
		"another machine is warned about":   {handler: "http://policy.example/hook?k=geheim", warns: true},
		"a private address is warned about": {handler: "http://10.0.0.1/hook", warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			r := New(Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Environ: []string{"KEY=" + testKey}})
			hook := hookOf(c.handler)
			if c.secret {
				hook.Sign, hook.Headers = "KEY", map[string]string{"X-Key": "${KEY}"}
			}
			load(t, r, hook)
			if warned := strings.Contains(log.String(), "unencrypted"); warned != c.warns || strings.Contains(log.String(), "geheim") {
				t.Errorf("the log is %q", log.String())
			}
		})
	}
}

func TestWithoutEnvironTheWorkersOwnIsUsed(t *testing.T) {
	t.Setenv("WEBHOOK_TEST_KEY", testKey)
	hook := hookOf(target)
	hook.Sign = "WEBHOOK_TEST_KEY"
	if h := load(t, New(Options{}), hook); string(h.key) != testKey {
		t.Errorf("the key is %q", h.key)
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "Bearer ${TOKEN}", "$$", "$", "${", "${}", "a${A}b$${A}", "${A}${A}$", "${Ä}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := expand(s, func(name string) (string, error) {
			if !isVariable(name) {
				t.Errorf("%q is asked for", name)
			}
			return "$" + name, nil // values are not expanded
		})
		if err == nil && !strings.Contains(s, "$") && got != s {
			t.Errorf("%q is %q", s, got)
		}
		again, err := expand(strings.ReplaceAll(s, "$", "$$"), nil)
		if len(s) <= schema.MaxHeader && (err != nil || again != s) {
			t.Errorf("%q with its dollars doubled is %q, %v", s, again, err)
		}
	})
}
