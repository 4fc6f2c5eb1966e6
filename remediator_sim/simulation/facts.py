"""What is so of a machine and decides how a program ends there. It goes with the boot; a fault shows some, too."""

# What programs find before they change anything.
GPU_NEEDS_RESET, GPU_LOST, DRIVER_SILENT = "a GPU needs a reset", "a GPU is lost", "the driver lists no GPU"
GPU_COMPUTES, GPU_HELD = "somebody computes on a GPU", "a process of no Pod holds a GPU"
DRIVER_CONTAINED, NO_DRIVER, DRIVER_USED = "a container has the driver", "no driver", "another module uses the driver"
MOUNT_STALE, MOUNT_USED, SERVER_SILENT = "a mount is stale", "a Pod holds a mount", "the file server is silent"
MOUNT_ABSENT = "a mount of NFS that is declared is not there"
NO_UNIT, SHIMS_END = "no such service", "a restart of the service ends containers"
ORPHANS, PODS_UNKNOWN = "processes of a Pod that is gone", "nobody knows which Pods live"
DISK_FULL, DISK_UNKNOWN = "a disk is too full", "nobody knows how full the disks are"
NVML_MISSING, GPU_BUSY, NO_GPU = "no NVML", "a GPU is in use", "NVML lists no GPU"
MIG_FAILS = "the MIG manager fails"
# What comes of it when they do change something.
RESET_BUSY, RESET_HANGS, RESET_BREAKS = "the driver says in use", "a reset hangs", "a reset is turned down"
GPU_AWAY = "a GPU is missing after it"
SERVICE_STAYS, MODULE_STAYS, MODULE_LOST = "a service does not stop", "a module stays", "a module does not load"
UMOUNT_FAILS, MOUNT_FAILS = "umount fails", "mount fails"
RESTART_FAILS, SERVICE_DIES, UNHEALTHY = "a service does not start", "a service dies again", "healthz is not ok"
UNKILLABLE = "a process cannot be killed"
GPU_WRONG, GPU_HANGS = "a GPU computes wrongly", "a GPU does not answer"
REBOOT_REFUSED, REBOOT_SILENT, STAYS_UP = "reboot is turned down", "nobody answers a reboot", "it does not go down"
BMC_SILENT = "its BMC does not answer"
BMC_LIES, POWER_STAYS = "its BMC says Off, whatever is so", "its BMC takes the power away from nothing"
GOES_DOWN_LATE = "a reboot is taken, and comes late"

# Which fact a bad condition shows.
SHOWN = {
    "GpuEccFault": GPU_NEEDS_RESET,
    "GpuLost": GPU_LOST,
    "NfsStale": MOUNT_STALE,
    "DevicesMissing": MOUNT_ABSENT,  # of all that may be missing, what an operation on the node looks for
    "GpuBusyWithoutPod": ORPHANS,
    "DiskPressure": DISK_FULL,
}
