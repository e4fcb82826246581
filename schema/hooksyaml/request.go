package hooksyaml

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

// headers reads the headers of an http hook.
func (r *reader) headers(h *schema.Hook, e entry) {
	entries, ok := r.mapping(e.value, "headers", "write Name: value below it")
	if !ok {
		return
	}
	if len(entries) > maxItems {
		r.fault(e.value, fmt.Sprintf("headers has %d items; the limit is %d", len(entries), maxItems), "write fewer")
		return
	}
	lines := make(map[string]int, len(entries))
	h.Headers = make(map[string]string, len(entries))
	for _, e := range entries {
		value, ok := r.header(e)
		folded := strings.ToLower(e.key)
		if line, twice := lines[folded]; twice {
			r.fault(e.at, fmt.Sprintf("the header %s appears twice; it is already on line %d in another case", quote(e.key), line), "keep one of them")
		}
		lines[folded] = e.at.Line
		if ok {
			h.Headers[e.key] = value
		}
	}
}

var (
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
	reference  = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]{0,127}\}`)
	// secretive matches names of headers whose values are secrets.
	secretive = regexp.MustCompile(`(?i)auth|cookie|token|secret|password|api-?key`)
)

// fixed matches headers that belong to the connection, and to the fabric.
var fixed = regexp.MustCompile(`(?i)^(host|(content|accept)-encoding|content-(length|type)|(proxy-)?connection|keep-alive|transfer-encoding|` +
	`te|trailer|upgrade|expect|proxy-auth(enticate|orization)|(x-)?idempotency-key|hook-.*|hookfabric-.*)$`)

// header reads one header, and warns if its value seems to be a secret.
func (r *reader) header(e entry) (string, bool) {
	secret := secretive.MatchString(e.key)
	if secret && !reference.MatchString(e.value.Value) {
		r.hide(e.value)
	}
	switch {
	case !headerName.MatchString(e.key):
		r.fault(e.at, fmt.Sprintf("%s is not a header name", quote(e.key)), "write letters, digits and -, such as X-Team")
		return "", false
	case fixed.MatchString(e.key):
		r.fault(e.at, fmt.Sprintf("the header %s cannot be set by a hook", e.key), "remove it")
		return "", false
	}
	if !r.headerValue(e.value, e.key) {
		return "", false
	}
	if secret && !reference.MatchString(e.value.Value) {
		r.warn(e.value, fmt.Sprintf("the value of the header %s stands in the file, and so in the configuration that every node can show; "+
			`write "${NAME}" to take it from the environment of the workers`, e.key))
	}
	return e.value.Value, true
}

// headerValue checks that a value can be sent, and that every $ in it begins a variable
// or is doubled, so that a misspelt variable is not sent as text. Faults do not repeat
// the value, which may be a secret.
func (r *reader) headerValue(n *yaml.Node, name string) bool {
	value := n.Value
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag != "!!str":
		r.fault(n, fmt.Sprintf("the value of the header %s is not text", name), `write it in quotes, such as "Bearer ${POLICY_TOKEN}"`)
	case strings.TrimSpace(value) == "":
		r.fault(n, fmt.Sprintf("the header %s is empty", name), "write its value, or remove it")
	case strings.TrimSpace(value) != value:
		r.fault(n, fmt.Sprintf("the header %s begins or ends with a space", name), "write it without")
	case len(value) > maxText:
		r.fault(n, fmt.Sprintf("the header %s has %d bytes; the limit is %d", name, len(value), maxText), "write less")
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		r.fault(n, fmt.Sprintf("the header %s has characters that no header can carry", name), "write it in one line")
	case strings.Contains(reference.ReplaceAllString(strings.ReplaceAll(value, "$$", ""), ""), "$"):
		r.fault(n, fmt.Sprintf("the header %s has a $ that begins no ${NAME}", name), "write ${NAME} with letters, digits and _ for a variable, or $$ for a dollar sign")
	default:
		return true
	}
	return false
}

// sign reads the name of the variable with the key of signatures.
func (r *reader) sign(h *schema.Hook, e entry) {
	const hint = "write the name of the variable in the environment of the workers that holds the secret, such as POLICY_SECRET"
	if n := e.value; n.Kind == yaml.ScalarNode && n.Value != "" && !variable.MatchString(n.Value) {
		r.hide(n)
		r.fault(n, "sign is not a name of an environment variable", hint)
		return
	}
	h.Sign, _ = r.word(e.value, "sign", hint)
}

var tlsKeys = []string{"ca", "cert", "key", "server_name"}

// tls reads the certificates of an http hook.
func (r *reader) tls(h *schema.Hook, e entry) {
	const hint = "write ca:, cert:, key: or server_name: below it"
	entries, _ := r.mapping(e.value, "tls", hint)
	var foreign []entry
	for _, e := range entries {
		switch e.key {
		case "ca":
			h.TLS.CA = r.pem(e)
		case "cert":
			h.TLS.Cert = r.pem(e)
		case "key":
			h.TLS.Key = r.pem(e)
		case "server_name":
			h.TLS.ServerName = r.serverName(e)
		default:
			foreign = append(foreign, e)
		}
	}
	faults := len(r.faults)
	r.foreign(foreign, "tls", tlsKeys, false)
	if len(r.faults) > faults {
		return
	}
	given := func(key string) bool { return slices.ContainsFunc(entries, func(e entry) bool { return e.key == key }) }
	switch {
	case given("cert") && !given("key"):
		r.fault(e.at, "tls has a cert without its key", "write key: with the path of its file")
	case given("key") && !given("cert"):
		r.fault(e.at, "tls has a key without its cert", "write cert: with the path of its file")
	}
}

// pem reads the path of a file, and rejects the content of one.
func (r *reader) pem(e entry) string {
	hint := "write the path of a file in PEM form, such as ./tls/" + e.key + ".pem"
	if strings.Contains(e.value.Value, "-----BEGIN") {
		r.hide(e.value)
		r.fault(e.value, fmt.Sprintf("the %s of tls is the content of a file", e.key), hint)
		return ""
	}
	s, _ := r.word(e.value, fmt.Sprintf("the %s of tls", e.key), hint)
	return s
}

var serverName = regexp.MustCompile(`^[\pL\pN_]([\pL\pN_.-]{0,251}[\pL\pN_])?$`)

func (r *reader) serverName(e entry) string {
	const hint = "write the name in the server's certificate, such as policy.example"
	s, ok := r.word(e.value, "server_name", hint)
	if ok && !serverName.MatchString(s) && !isAddress(s) {
		r.fault(e.value, fmt.Sprintf("the server_name %s is not a server name", quote(s)), hint)
		return ""
	}
	return s
}
