package doctor

import (
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// If two fabrics answered at one URL, the guards of both count.
func TestThePolicyIsThatOfAllFabricsThatAnswered(t *testing.T) {
	const url = "nats://127.0.0.1:4333"
	o := &Options{State: t.TempDir(), NATS: url}
	for i, fabric := range []string{"f-1", "f-2"} {
		seed := make([]byte, ed25519.SeedSize)
		seed[0] = byte(i)
		s, err := guard.NewSigner(seed)
		if err != nil {
			t.Fatal(err)
		}
		p := schema.Policy{Fabric: fabric, ConfigVersion: uint64(9 - i), Hooks: []schema.PolicyHook{{Hook: "guard", Event: schema.PreToolUse, Guards: true}, {Hook: "reader", Event: schema.PreToolUse, Native: true}}}
		if i == 1 {
			p.Hooks = []schema.PolicyHook{}
		}
		document, err := schema.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shimstate.Folder(o.State).Accept(shimstate.Offer{Fabric: fabric, URLs: []string{url}, Answer: new(s.Sign(document))}); err != nil {
			t.Fatal(err)
		}
	}
	p := policyState(o)
	if !p.Known || p.Guards != 1 || p.Fabrics != 2 || p.Fabric != "f-2" || p.ConfigVersion != 8 {
		t.Errorf("%+v", p)
	}
	var out strings.Builder
	if err := (&Report{Policy: p}).Print(&out); err != nil || !strings.Contains(out.String(), "does not answer: 1\n") || !strings.Contains(out.String(), "2 fabrics answered") {
		t.Errorf("%v\n%s", err, &out)
	}
}
