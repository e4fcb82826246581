package guard_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

func signer(t *testing.T, of byte) *guard.Signer {
	t.Helper()
	s, err := guard.NewSigner(bytes.Repeat([]byte{of}, guard.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOnlyDocumentsOfTheFabricAreAccepted(t *testing.T) {
	document := []byte(`{"fabric":"f","config_version":3,"hooks":[]}`)
	good, other := signer(t, 1).Sign(document), signer(t, 2).Sign(document)
	signer(t, 1).Freshen(&good, "once")
	if p, err := guard.Open(&good, nil); err != nil || p.Fabric != "f" || p.ConfigVersion != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := guard.Open(&good, good.Key); err != nil {
		t.Error(err)
	}
	if _, err := guard.Open(&other, good.Key); !errors.Is(err, guard.ErrOtherKey) {
		t.Errorf("another key: %v", err)
	}
	for name, change := range map[string]func(*schema.PolicyAnswer){
		"a changed document":   func(a *schema.PolicyAnswer) { a.Document = strings.Replace(a.Document, "3", "4", 1) },
		"another signature":    func(a *schema.PolicyAnswer) { a.Signature = other.Signature },
		"no signature":         func(a *schema.PolicyAnswer) { a.Signature = nil },
		"a short key":          func(a *schema.PolicyAnswer) { a.Key = a.Key[:5] },
		"what signs its nonce": func(a *schema.PolicyAnswer) { a.Signature = a.Fresh },
	} {
		a := good
		a.Signature, a.Key = slices.Clone(a.Signature), slices.Clone(a.Key)
		change(&a)
		if _, err := guard.Open(&a, nil); !errors.Is(err, guard.ErrForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	large := signer(t, 1).Sign(bytes.Repeat([]byte(" "), schema.MaxPolicy+1))
	if _, err := guard.Open(&large, nil); err == nil {
		t.Error("a document of any size is read")
	}
	junk := signer(t, 1).Sign([]byte("[]"))
	if _, err := guard.Open(&junk, nil); err == nil {
		t.Error("a list is a policy")
	}
}

func TestAnAnswerIsFreshOnlyForItsNonce(t *testing.T) {
	a := signer(t, 1).Sign([]byte(`{"config_version":3}`))
	if guard.Fresh(&a, "once") || guard.Fresh(&a, "") {
		t.Error("it is fresh without a nonce")
	}
	signer(t, 1).Freshen(&a, "once")
	later := signer(t, 1).Sign([]byte(`{"config_version":4}`))
	later.Fresh = a.Fresh
	if !guard.Fresh(&a, "once") || guard.Fresh(&a, "twice") || guard.Fresh(&a, "") || guard.Fresh(&later, "once") {
		t.Error("it is not fresh for its nonce only")
	}
	signer(t, 2).Freshen(&a, "once")
	if guard.Fresh(&a, "once") {
		t.Error("a nonce signed by another key is fresh")
	}
}

// Implementations in other languages compare with the golden file.
func TestTheGoldenPolicyIsSigned(t *testing.T) {
	data, err := os.ReadFile("../testdata/wire/policy.answer.json")
	if err != nil {
		t.Fatal(err)
	}
	var a schema.PolicyAnswer
	if err := schema.Unmarshal(data, &a); err != nil {
		t.Fatal(err)
	}
	if p, err := guard.Open(&a, nil); err != nil || p.ConfigVersion != 7 || !guard.Fresh(&a, "0199f3c1-6d1f") {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestASeedHasItsSize(t *testing.T) {
	if _, err := guard.NewSigner([]byte("short")); err == nil {
		t.Error("a short seed makes a key")
	}
}
