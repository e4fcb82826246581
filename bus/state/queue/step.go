package queue

// A Step is a step of an item at which a test can simulate the death of the process.
type Step string

// The steps, in the order of an item's life.
const (
	// StepEnqueueBegun: nothing is written.
	StepEnqueueBegun Step = "enqueue.begun"
	// StepEnqueueStored: the item is on disk, without an answer.
	StepEnqueueStored Step = "enqueue.stored"
	// StepClaimBegun: items are chosen, nothing is written.
	StepClaimBegun Step = "claim.begun"
	// StepClaimStored: the lease is on disk, without a verdict.
	StepClaimStored Step = "claim.stored"
	// StepAckBegun: the acknowledgement was received, nothing is written.
	StepAckBegun Step = "ack.begun"
	// StepAckStored: it is on disk, and the items are still in the bucket.
	StepAckStored Step = "ack.stored"
	// StepEndBegun: the item's end is decided, and the item is still in the bucket.
	StepEndBegun Step = "end.begun"
	// StepEndStored: the item's end is on disk.
	StepEndStored Step = "end.stored"
	// StepMarkStored: a producer's mark is on disk.
	StepMarkStored Step = "mark.stored"
)
