// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// Version 1. Keeps the newest head of every log, under the key that wrote it: a log's size only ever grows here. A head is
/// read back with one eth_call, from any node; its history is in the events. The contract has no owner, and no key can change
/// what another key wrote, so one deployment on a chain serves all gateways.
contract CheckpointAnchor {
    struct Head {
        uint64 size;
        uint64 time;
        bytes32 root;
    }

    mapping(address by => mapping(bytes32 origin => Head)) private heads;

    /// `origin` is the SHA-256 of the log's name, the first line of its checkpoints; size and root are those of RFC 6962.
    event Anchored(address indexed by, bytes32 indexed origin, uint64 size, bytes32 root);

    /// There is a head of this size already.
    error NotNewer(uint64 size);

    function anchor(bytes32 origin, uint64 size, bytes32 root) external {
        Head storage head = heads[msg.sender][origin];
        if (size <= head.size) revert NotNewer(head.size);
        head.size = size;
        head.time = uint64(block.timestamp);
        head.root = root;
        emit Anchored(msg.sender, origin, size, root);
    }

    /// The newest head of a log that a key has written, and the Unix time of its block; all zero if there is none.
    function newest(address by, bytes32 origin) external view returns (uint64 size, bytes32 root, uint64 time) {
        Head storage head = heads[by][origin];
        return (head.size, head.root, head.time);
    }
}
