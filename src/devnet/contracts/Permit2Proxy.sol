// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IPermit2 {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    function permitWitnessTransferFrom(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata details,
        address owner,
        bytes32 witness,
        string calldata witnessTypeString,
        bytes calldata signature
    ) external;
}

interface IPermitToken {
    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external;
}

/// What the proxies of x402's schemes over Permit2 have in common. No immutables: their code is set, not deployed.
abstract contract Permit2Proxy {
    struct EIP2612Permit {
        uint256 value;
        uint256 deadline;
        bytes32 r;
        bytes32 s;
        uint8 v;
    }

    IPermit2 public constant PERMIT2 = IPermit2(0x000000000022D473030F116dDEE9F6B43aC78BA3);
    bool private isUnderWay;

    event Settled();
    event SettledWithPermit();
    event EIP2612PermitFailedWithData(address indexed token, address indexed owner, bytes data);

    error InvalidDestination();
    error InvalidOwner();
    error PaymentTooEarly();
    error Permit2612AmountMismatch();
    error ReentrancyGuardReentrantCall();

    modifier alone() {
        if (isUnderWay) revert ReentrancyGuardReentrantCall();
        isUnderWay = true;
        _;
        isUnderWay = false;
    }

    function move(
        IPermit2.PermitTransferFrom calldata permit,
        IPermit2.SignatureTransferDetails memory details,
        address owner,
        uint256 validAfter,
        bytes32 witnessHash,
        string memory witnessTypeString,
        bytes calldata signature
    ) internal {
        if (owner == address(0)) revert InvalidOwner();
        if (details.to == address(0)) revert InvalidDestination();
        if (block.timestamp < validAfter) revert PaymentTooEarly();
        PERMIT2.permitWitnessTransferFrom(permit, details, owner, witnessHash, witnessTypeString, signature);
    }

    /// A permit that fails stops nothing: the approval may be there already.
    function approve(
        IPermit2.TokenPermissions calldata permitted,
        address owner,
        EIP2612Permit calldata permit
    ) internal {
        if (permit.value != permitted.amount) revert Permit2612AmountMismatch();
        try IPermitToken(permitted.token).permit(
            owner, address(PERMIT2), permit.value, permit.deadline, permit.v, permit.r, permit.s
        ) {} catch (bytes memory data) {
            emit EIP2612PermitFailedWithData(permitted.token, owner, data);
        }
    }
}
