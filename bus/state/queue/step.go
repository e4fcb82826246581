package queue

// A Step is a point on the way of an item at which a process may die.
type Step string

// The steps, in the order in which an item meets them.
const (
	// StepEnqueueBegun: nothing was written yet.
	StepEnqueueBegun Step = "enqueue.begun"
	// StepEnqueueStored: the item is on disk, nobody was told.
	StepEnqueueStored Step = "enqueue.stored"
	// StepClaimBegun: items were chosen, nothing was written.
	StepClaimBegun Step = "claim.begun"
	// StepClaimStored: the lease is on disk, the verdict was not sent.
	StepClaimStored Step = "claim.stored"
	// StepAckBegun: the acknowledgement was read, nothing was written.
	StepAckBegun Step = "ack.begun"
	// StepAckStored: it is on disk, the items are still in the bucket.
	StepAckStored Step = "ack.stored"
	// StepEndBegun: the item's end is decided, and the item still in the bucket.
	StepEndBegun Step = "end.begun"
	// StepEndStored: the item's end is on disk.
	StepEndStored Step = "end.stored"
	// StepMarkStored: a producer's mark is on disk.
	StepMarkStored Step = "mark.stored"
)
