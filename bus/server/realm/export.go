package realm

import (
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// ServerConfig returns the part of a nats-server's configuration that makes it require credentials of this
// realm. It contains no secrets. Such a server does not follow the folder: after a new tenant or a
// revocation it needs a new export and a reload.
func (r *Realm) ServerConfig() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Written by 'broker creds export': who may use the fabric. Include it in the configuration of
# every nats-server of the deployment, and export it again and reload them (nats-server --signal
# reload) when a tenant was added or credentials were revoked.
operator: %s
system_account: %s
max_payload: %d
max_control_line: %d
jetstream: {}
resolver: MEMORY
resolver_preload: {
  # system
  %s: %s
`, r.Operator.JWT, r.System.Key, schema.MaxPayload, bus.MaxCreds, r.System.Key, r.System.JWT)
	for i := range r.Tenants {
		t := &r.Tenants[i]
		fmt.Fprintf(&b, "  # tenant %s\n  %s: %s\n", strings.ToValidUTF8(strings.Map(onOneLine, t.Name), "?"), t.Key, t.JWT)
	}
	b.WriteString("}\n")
	return b.String()
}

// onOneLine replaces control characters of a name in a comment.
func onOneLine(c rune) rune {
	if c < ' ' || c == 0x7f {
		return '?'
	}
	return c
}
