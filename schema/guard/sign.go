package guard

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// A Signer signs policies with the key that all brokers of a fabric share.
type Signer struct{ key ed25519.PrivateKey }

// SeedSize is the length of the random seed of a [Signer], in bytes.
const SeedSize = ed25519.SeedSize

// NewSigner returns the signer of a seed of [SeedSize] random bytes.
func NewSigner(seed []byte) (*Signer, error) {
	if len(seed) != SeedSize {
		return nil, fmt.Errorf("the seed of the policies' key has %d bytes; it must have %d", len(seed), SeedSize)
	}
	return &Signer{ed25519.NewKeyFromSeed(seed)}, nil
}

// Sign signs a policy's JSON.
func (s *Signer) Sign(document []byte) schema.PolicyAnswer {
	public, _ := s.key.Public().(ed25519.PublicKey)
	return schema.PolicyAnswer{Document: string(document), Signature: ed25519.Sign(s.key, document), Key: public}
}

// Freshen signs the nonce of a request, to prove that the policy was active at the time of the
// request.
func (s *Signer) Freshen(a *schema.PolicyAnswer, nonce string) {
	a.Fresh = ed25519.Sign(s.key, asked(a.Document, nonce))
}

// asked returns the bytes to sign for a nonce. They can never be a document.
func asked(document, nonce string) []byte {
	sum := sha256.Sum256([]byte(document))
	return append([]byte("hookfabric policy asked for with "+nonce+"\n"), sum[:]...)
}

// The reasons to reject a policy.
var (
	// ErrForged means that the signature does not match the document and the key.
	ErrForged = errors.New("the policy is not signed by the key that it comes with")
	// ErrOtherKey means that another key than the fabric's signed the policy.
	ErrOtherKey = errors.New("the policy is signed by another key than the one this fabric had before")
)

// Open checks the signature of a policy and reads it. key is the fabric's public key, if known.
// If it is empty, Open uses the key in the answer.
func Open(a *schema.PolicyAnswer, key []byte) (*schema.Policy, error) {
	switch {
	case len(a.Document) > schema.MaxPolicy:
		return nil, fmt.Errorf("the policy has %d bytes; the limit is %d", len(a.Document), schema.MaxPolicy)
	case len(key) > 0 && !bytes.Equal(key, a.Key):
		return nil, ErrOtherKey
	case len(a.Key) != ed25519.PublicKeySize || !ed25519.Verify(a.Key, []byte(a.Document), a.Signature):
		return nil, ErrForged
	}
	return Read(a)
}

// Read reads a policy without a check of its signature.
func Read(a *schema.PolicyAnswer) (*schema.Policy, error) {
	p := new(schema.Policy)
	if err := schema.Unmarshal([]byte(a.Document), p); err != nil {
		return nil, fmt.Errorf("the policy cannot be read; was it made by a newer release? %w", err)
	}
	return p, nil
}

// Fresh reports whether the broker made an opened answer for the nonce.
func Fresh(a *schema.PolicyAnswer, nonce string) bool {
	return nonce != "" && len(a.Key) == ed25519.PublicKeySize && ed25519.Verify(a.Key, asked(a.Document, nonce), a.Fresh)
}
