package bustest

import (
	"bytes"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// Signer returns the signer whose seed repeats one byte.
func Signer(of byte) *guard.Signer {
	s, err := guard.NewSigner(bytes.Repeat([]byte{of}, guard.SeedSize))
	if err != nil {
		panic(err) // the seed has its size
	}
	return s
}

// Policy returns the signed policy. The caller holds the lock.
func (f *Fabric) Policy(nonce string) (*schema.PolicyAnswer, error) {
	p := schema.Policy{Fabric: f.ID, ConfigVersion: f.Version, Hooks: f.Guards, FreezeVersion: f.FreezeVersion, Freezes: f.Freezes}
	if len(f.Freezes) > 0 {
		p.Terminal = schema.TerminalTools()
	}
	document, err := schema.Marshal(&p)
	if err != nil {
		return nil, err
	}
	a := f.Signer.Sign(document)
	if nonce != "" {
		f.Signer.Freshen(&a, nonce)
	}
	return &a, nil
}

func (f *Fabric) policy(m *nats.Msg) {
	var r schema.PolicyRequest
	if !read(m, &r) {
		return
	}
	f.Policies++
	if f.Signer == nil {
		Refuse(m, schema.CodeUnavailable, "there is no policy")
		return
	}
	a, err := f.Policy(r.Nonce)
	if err != nil {
		Refuse(m, schema.CodeInternal, err.Error())
		return
	}
	Respond(m, a)
}

func (f *Fabric) record(m *nats.Msg) {
	var r schema.RecordRequest
	if !read(m, &r) {
		return
	}
	for _, u := range r.Calls {
		f.Unjudged[u.EventID]++
		f.Recorded = append(f.Recorded, u)
	}
	Respond(m, &schema.RecordAnswer{Fabric: f.ID})
}
