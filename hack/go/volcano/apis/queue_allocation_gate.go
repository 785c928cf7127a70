package v1beta1

// QueueAllocationGateKey is what Volcano 1.15 calls the gate of a pod that waits for its queue, as its documents name
// it. The version of its API in go.mod does not have it yet.
const QueueAllocationGateKey = GroupName + "/queue-allocation-gate"
