//! The messages of Mesos' v1 scheduler API that a framework uses: it sends [`Call`]s and receives [`Event`]s. Those of
//! the executor API are in [`executor`].
//!
//! The names, numbers and types of all fields are those of Mesos 1.11. Fields that aren't defined here are skipped when
//! decoding. Missing required fields decode to their defaults; code that needs such a field checks for it.
//!
//! Enumerations are stored as numbers, so that an unknown value from a newer Mesos isn't an error. The method with the
//! name of the field returns the known value, or the default for an unknown one; `TryFrom<i32>` distinguishes these
//! cases.

pub mod call;
mod check;
mod command;
mod constraints;
mod container;
pub mod event;
pub mod executor;
mod framework;
mod ids;
mod offer;
mod operation;
mod resource;
mod status;
mod task;
mod value;

pub use call::Call;
pub use check::{
    CheckCommand, CheckHttp, CheckInfo, CheckStatusCommand, CheckStatusHttp, CheckStatusInfo,
    CheckStatusTcp, CheckTcp, CheckType, HealthCheck, HealthCheckHttp, HealthCheckTcp,
    HealthCheckType,
};
pub use command::{
    CommandInfo, Environment, Secret, SecretReference, SecretType, SecretValue, Uri, Variable,
    VariableType,
};
pub use constraints::{
    AttributeConstraint, ConstraintGroup, Exists, NotExists, OfferConstraints, Predicate,
    Pseudoattribute, RoleConstraints, Selector, TextEquals, TextMatches, TextNotEquals,
    TextNotMatches,
};
pub use container::{
    AppcImage, ContainerInfo, ContainerType, DockerImage, DockerInfo, DockerNetwork,
    DockerPortMapping, DockerVolume, HostPath, Image, ImageType, IpAddress, MesosInfo,
    MountPropagation, MountPropagationMode, NetworkInfo, PortMapping, Protocol, SandboxPath,
    SandboxPathType, Volume, VolumeMode, VolumeSource, VolumeSourceType,
};
pub use event::Event;
pub use framework::{
    Capability, CapabilityType, FrameworkInfo, MasterCapability, MasterCapabilityType, MasterInfo,
    MinAllocatableResources, OfferFilters, ResourceQuantities,
};
pub use ids::{
    Address, AgentId, ContainerId, DurationInfo, ExecutorId, FrameworkId, Label, Labels, OfferId,
    OperationId, Parameter, Parameters, ResourceProviderId, TaskId, TimeInfo, Url, Uuid,
};
pub use offer::{
    DomainInfo, FaultDomain, Filters, InverseOffer, Offer, RegionInfo, Unavailability, ZoneInfo,
};
pub use operation::{
    Create, Destroy, Launch, LaunchGroup, Operation, OperationState, OperationStatus,
    OperationType, Reserve, TaskGroupInfo, Unreserve,
};
pub use resource::{
    AllocationInfo, DiskInfo, DiskMount, DiskPath, DiskSource, DiskSourceType, Persistence,
    ReservationInfo, ReservationType, Resource, ResourceRequest, RevocableInfo, SharedInfo,
};
pub use status::{ContainerStatus, Reason, Source, TaskResourceLimitation, TaskState, TaskStatus};
pub use task::{
    DiscoveryInfo, ExecutorInfo, ExecutorType, KillPolicy, Port, Ports, TaskInfo, Visibility,
};
pub use value::{Attribute, Range, Ranges, Scalar, Set, Text, Value, ValueType};
