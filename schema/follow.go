package schema

// VerbFollow returns the state of the configuration, or a part of one version.
const VerbFollow = "follow"

// A FollowRequest without a version asks for the state of the configuration, a [Standing]. With
// a version it asks for a part of that version as stored, a [FetchAnswer].
type FollowRequest struct {
	// Version is the version to read; absent: return a [Standing].
	Version uint64 `json:"version,omitzero"`
	// Fabric is the fabric that the version belongs to. Two fabrics may use the same numbers.
	Fabric string `json:"fabric,omitzero"`
	// Offset is the number of bytes that the client has read already.
	Offset int64 `json:"offset,omitzero"`
}

// A Standing is the state of the configuration.
type Standing struct {
	Fabric string `json:"fabric"`
	// Revision increases with every change of the members below.
	Revision uint64 `json:"revision"`
	// Active is the active version; 0: no version yet.
	Active uint64 `json:"active"`
	// Proposed is the version that brokers and workers are loading as the next active one; 0:
	// no proposal.
	Proposed uint64 `json:"proposed,omitzero"`
	// Keep lists the versions that nodes hold in memory, newest first.
	Keep []uint64 `json:"keep,omitzero"`
}
