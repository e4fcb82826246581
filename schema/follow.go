package schema

// VerbFollow asks where the configuration stands, or for a part of a version.
const VerbFollow = "follow"

// A FollowRequest asks where the configuration stands, which a [Standing] answers;
// one that names a version asks for that, and a [FetchAnswer] has a part of it as it
// is stored.
type FollowRequest struct {
	// Version is the one to read; absent: none.
	Version uint64 `json:"version,omitzero"`
	// Fabric is the fabric whose version that is: another one's have the same numbers.
	Fabric string `json:"fabric,omitzero"`
	// Offset is how many bytes of it were read.
	Offset int64 `json:"offset,omitzero"`
}

// A Standing is where the configuration stands.
type Standing struct {
	Fabric string `json:"fabric"`
	// Revision is another one whenever anything below changed, and a higher one.
	Revision uint64 `json:"revision"`
	// Active is the active version; 0: none yet.
	Active uint64 `json:"active"`
	// Proposed is the version that is to become active; 0: none.
	Proposed uint64 `json:"proposed,omitzero"`
	// Keep are the versions that nodes hold on to, newest first.
	Keep []uint64 `json:"keep,omitzero"`
}
