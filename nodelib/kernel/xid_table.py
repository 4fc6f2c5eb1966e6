"""What each Xid and SXid of the NVIDIA driver calls for. Data; xid.py reads it.

Columns: code, or first-last; mnemonic of NVIDIA's catalogue (https://docs.nvidia.com/deploy/xid-errors); class; class
when it comes again; what NVIDIA's catalogue calls for at once ("-": it has no such code, or says nothing); note.

Classes: APP the job's own fault; IGN follows from another code, or is a test; W to be watched; R reset; B reboot; P off
and on; H inspection, and replacement where that finds a fault; L, L5 and C are R, H or W by the text of the line; 154
names the repair itself.
"Again" means: for an APP code, from another process on the same GPU; for W, more than some minutes later; for others,
after a repair in this boot. A code that is not here is unexpected: it starts nothing, and is only told after a while.
"""

XIDS = """
8       | FIFO_ERROR_IDLE_TIMEOUT             | APP |   | RESTART_APP          |
11      | GR_ERROR_MISSING_HW                 | APP |   | RESTART_APP          |
13      | GR_EXCEPTION                        | APP | W | RESTART_APP          | same GPC and TPC again: diagnose
14      | FAKE_ERROR                          | IGN |   | IGNORE               | a program has injected it
25      | GR_ILLEGAL_NOTIFY                   | APP |   | RESTART_APP          |
31      | FIFO_ERROR_MMU_ERR_FLT              | APP | W | RESTART_APP          | same GPU again: diagnose
32      | PBDMA_ERROR                         | APP | W | RESTART_APP          | a job that restarts repeats it, too
37      | FECS_ERR_UNIMP_FIRMWARE_METHOD      | APP | W | IGNORE               |
38      | FECS_ERR_WATCHDOG_TIMEOUT           | W   |   | IGNORE               |
39-42   | COPY_ENGINE_ERROR                   | APP |   | RESTART_APP          |
43      | RESETCHANNEL_VERIF_ERROR            | APP |   | IGNORE               |
44      | GR_FAULT_DURING_CTXSW               | W   |   | IGNORE               |
45      | PREEMPTIVE_REMOVAL                  | IGN |   | WORKFLOW_XID_45      | the channel ended by another fault
46      | GPU_TIMEOUT_ERROR                   | R   |   | RESET_GPU            |
48      | GPU_ECC_DBE                         | R   |   | WORKFLOW_XID_48      |
54      | SILENT_RUNNING_PWR_REDUCED_CLOCKING | H   |   | CHECK_MECHANICALS    | power is not connected
60      | SEC2_ERROR                          | APP |   | RESTART_APP          |
61      | PMU_BREAKPOINT                      | B   |   | CONTACT_SUPPORT      |
62      | PMU_HALT_ERROR                      | R   | B | RESET_GPU            |
63      | INFOROM_DRAM_RETIREMENT_EVENT       | W   |   | IGNORE               | a row waits for a reset; jobs are safe
64      | INFOROM_DRAM_RETIREMENT_FAILURE     | R   | H | RESET_GPU            |
65      | VIDEO_ENGINE_ERROR                  | APP |   | RESTART_APP          |
66      | FECS_ERR_REG_ACCESS_VIOLATION       | W   |   | IGNORE               |
67      | FECS_ERR_VERIF_VIOLATION            | W   |   | IGNORE               |
68      | NVDEC0_ERROR                        | APP |   | RESTART_APP          |
69      | GR_CLASS_ERROR                      | APP |   | RESTART_APP          |
70-72   | COPY_ENGINE_ERROR                   | APP |   | RESTART_APP          |
73      | VIDEO_ENGINE_ERROR                  | APP |   | RESTART_APP          |
74      | NVLINK_ERROR                        | L   |   | WORKFLOW_NVLINK_ERR  | both ends of a link show it
75-77   | COPY_ENGINE_ERROR                   | APP |   | RESTART_APP          |
78      | VGPU_START_ERROR                    | W   |   | UPDATE_SWFW          | driver and vGPU manager do not fit
79      | GPU_HAS_FALLEN_OFF_THE_BUS          | B   | H | RESTART_BM           | power, heat, seating in its slot
80      | PBDMA_PUSHBUFFER_CRC_MISMATCH       | APP |   | RESTART_APP          |
82-84   | VIDEO_ENGINE_ERROR                  | APP |   | RESTART_APP          |
85      | COPY_ENGINE_ERROR                   | APP |   | RESTART_APP          |
86      | VIDEO_ENGINE_ERROR                  | APP |   | RESTART_APP          |
88-89   | VIDEO_ENGINE_ERROR                  | APP |   | RESTART_APP          |
92      | EXCESSIVE_SBE_INTERRUPTS            | W   |   | IGNORE               | informational since Ampere
93      | INFOROM_ERASE_LIMIT_EXCEEDED        | W   |   | IGNORE               |
94      | CONTAINED_ERROR                     | C   |   | RESTART_APP          | one job is lost; reset when idle
95      | UNCONTAINED_ERROR                   | R   |   | RESET_GPU            |
96-105  | VIDEO_ENGINE_ERROR                  | APP |   | RESTART_APP          |
106-107 | SMBPBI_TEST_MESSAGE                 | IGN |   | IGNORE               | the BMC has tried its line
108     | NVLINK_REMOTE_TRANSLATION_ERROR     | APP | W | IGNORE               | as 137
109     | CTXSW_TIMEOUT_ERROR                 | W   | R | RESET_GPU            | at once only if 154 says so
110     | SEC_FAULT_ERROR                     | P   | H | RESET_GPU            | undo what was last built in
119     | GSP_RPC_TIMEOUT                     | R   | B | RESET_GPU            | on many nodes at once: the driver
120     | GSP_ERROR                           | R   | B | RESET_GPU            |
121     | C2C_ERROR                           | W   |   | IGNORE               |
122     | SPI_PMU_RPC_READ_FAIL               | W   | H | CONTACT_SUPPORT      |
123     | SPI_PMU_RPC_WRITE_FAIL              | W   | H | CONTACT_SUPPORT      |
124     | SPI_PMU_RPC_ERASE_FAIL              | W   | H | CONTACT_SUPPORT      |
125     | INFOROM_FS_ERROR                    | W   | H | CONTACT_SUPPORT      |
126-135 | COPY_ENGINE_ERROR                   | APP |   | RESTART_APP          |
136     | ALI_TRAINING_FAIL                   | L   |   | RESET_GPU            | an NVLink did not train
137     | NVLINK_PRIV_ERR                     | APP |   | IGNORE               | an illegal access of a peer GPU
139     | OFA1_ERROR                          | APP |   | RESTART_APP          |
140     | UNRECOVERABLE_ECC_ERROR_ESCAPE      | R   |   | RESET_GPU            |
141     | FAST_PATH_ERROR                     | W   |   | IGNORE               |
142     | NVENC3_ERROR                        | W   |   | CONTACT_SUPPORT      |
143     | GPU_INIT_ERROR                      | R   | B | RESET_GPU            |
144     | NVLINK_SAW_ERROR                    | L5  |   | WORKFLOW_NVLINK5_ERR |
145     | NVLINK_RLW_ERROR                    | L5  |   | WORKFLOW_NVLINK5_ERR | RXPIPE: a reset by its registers
146     | NVLINK_TLW_ERROR                    | L5  |   | WORKFLOW_NVLINK5_ERR |
147     | NVLINK_TREX_ERROR                   | L5  |   | WORKFLOW_NVLINK5_ERR |
148     | NVLINK_NVLPW_CTRL_ERROR             | L5  |   | WORKFLOW_NVLINK5_ERR |
149     | NVLINK_NETIR_ERROR                  | L5  |   | WORKFLOW_NVLINK5_ERR |
150     | NVLINK_MSE_ERROR                    | L5  |   | WORKFLOW_NVLINK5_ERR |
151     | KEY_ROTATION_ERROR                  | B   |   | RESTART_VM           |
152     | DLA_SMMU_ERROR                      | W   |   | IGNORE               |
153     | DLA_TIMEOUT                         | W   |   | IGNORE               |
154     | GPU_RECOVERY_ACTION_CHANGED         | 154 |   | XID_154              |
155     | NVLINK_SW_DEFINED_ERROR             | R   |   | RESET_GPU            |
156     | RESOURCE_RETIREMENT_EVENT           | R   |   | RESET_GPU            |
157     | RESOURCE_RETIREMENT_FAILURE         | W   | H | IGNORE               |
158     | GPU_FATAL_TIMEOUT                   | R   | B | RESET_GPU            |
159     | CHI_NON_DATA_ERROR                  | W   |   | CHECK_UVM            | a reset only if 154 says so
160     | CHANNEL_RETIREMENT_EVENT            | W   |   | IGNORE               |
161     | CHANNEL_RETIREMENT_FAILURE          | W   |   | IGNORE               |
162-165 | POWER_SMOOTHING                     | W   |   | -                    | 165: its lifetime is used up
166     | CONFIDENTIAL_COMPUTING              | W   |   | -                    |
167     | PCIE_FATAL_TIMEOUT                  | B   |   | -                    |
168     | REDUCED_GPU_MEMORY_CAPACITY         | B   |   | -                    |
169     | SEC2_HALT_ERROR                     | R   |   | -                    |
170     | CONFIDENTIAL_COMPUTING              | W   |   | -                    |
171     | UNCORRECTABLE_DRAM_ERROR            | W   |   | -                    | says more of a 48
172     | UNCORRECTABLE_SRAM_ERROR            | W   |   | -                    | says more of a 48
173     | C2C_FATAL_LINK_FAILURE              | R   |   | -                    | of driver 595
175     | MEMORY_SUBSYSTEM_ERROR              | R   |   | -                    | of driver 595
176     | PCIE_CORRECTABLE_ERROR_FAULT        | W   |   | -                    | of driver 595
"""

# Of NVSwitch: fatal whatever the line says, and never told as a fault. Of all others the line's own word decides.
SXIDS_FATAL = "12020, 22003, 22011, 23001-23017"
SXIDS_HARMLESS = "11012, 12028, 20001"
SXID_LINK_DIED = 20034  # LTSSM fault up: of a GPU that has just fallen off the bus, too
