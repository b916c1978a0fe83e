// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// Who may call which service, as a gateway asks it before money moves. A toy: anyone may write it.
contract CallerRegistry {
    mapping(uint64 serviceId => mapping(address caller => bool)) private permitted;
    bool private broken;

    /// Permits the first callers in the deployment itself: there is never a registry half set up.
    constructor(uint64 serviceId, address[] memory callers) {
        for (uint256 i = 0; i < callers.length; i++) {
            permitted[serviceId][callers[i]] = true;
        }
    }

    function setPermitted(uint64 serviceId, address caller, bool isPermitted) external {
        permitted[serviceId][caller] = isPermitted;
    }

    /// Makes every question revert, as a contract does that was upgraded wrongly.
    function setBroken(bool isBroken) external {
        broken = isBroken;
    }

    function isPermittedCaller(uint64 serviceId, address caller) external view returns (bool) {
        require(!broken, "CallerRegistry: broken");
        return permitted[serviceId][caller];
    }
}
