// The C ABI of libdcmi, in one place: constants, structures, and one table of every function.
//
// Plain C, so that the mock library and C clients share it; in the driver only the wrapper
// (library.cc) includes it. Sources: Huawei's DCMI API documentation, and what the public sources
// of two users of the ABI declare (MindCluster, the CANN driver). Field spellings are the ABI's.
// Layouts hold on LP64 (x86-64, AArch64) and are asserted below.
//
// Uncertain, so never relied upon: versions of the library grow structures at their tail
// (dcmi_ecc_info is 28 or 36 bytes), hence callers pass zeroed buffers with slack; any function may
// be missing from a given version, hence each is looked up on its own.
#ifndef ASCEND_DRA_VNPU_DCMI_ABI_H_
#define ASCEND_DRA_VNPU_DCMI_ABI_H_

#include <stddef.h>

#ifdef __cplusplus
#define ASCEND_DCMI_ASSERT(condition) static_assert(condition, #condition)
// A library may answer with a value that this header does not know: give enums every value.
#define ASCEND_DCMI_ENUM(name) enum name : unsigned
extern "C" {
#else
#define ASCEND_DCMI_ASSERT(condition) _Static_assert(condition, #condition)
#define ASCEND_DCMI_ENUM(name) enum name
#endif

// Return codes. -99997 and below are a client's own, for a library or a symbol that is not there.
// X(code, name)
#define ASCEND_DCMI_RETURN_CODES(X)  \
  X(0, OK)                           \
  X(-8001, INVALID_PARAMETER)        \
  X(-8002, OPER_NOT_PERMITTED)       \
  X(-8003, MEM_OPERATE_FAIL)         \
  X(-8004, SECURE_FUN_FAIL)          \
  X(-8005, INNER_ERR)                \
  X(-8006, TIME_OUT)                 \
  X(-8007, INVALID_DEVICE_ID)        \
  X(-8008, DEVICE_NOT_EXIST)         \
  X(-8009, IOCTL_FAIL)               \
  X(-8010, SEND_MSG_FAIL)            \
  X(-8011, RECV_MSG_FAIL)            \
  X(-8012, NOT_READY)                \
  X(-8013, NOT_SUPPORT_IN_CONTAINER) \
  X(-8014, FILE_OPERATE_FAIL)        \
  X(-8015, RESET_FAIL)               \
  X(-8016, ABORT)                    \
  X(-8017, IS_UPGRADING)             \
  X(-8020, RESOURCE_OCCUPIED)        \
  X(-8022, PARTITION_NOT_RIGHT)      \
  X(-8023, CONFIG_INFO_NOT_EXIST)    \
  X(-8255, NOT_SUPPORT)              \
  X(-99997, LIBRARY_INVALID)         \
  X(-99998, FUNCTION_NOT_FOUND)      \
  X(-99999, UNKNOWN)

enum {
#define ASCEND_DCMI_RETURN_CODE(code, name) DCMI_##name = (code),
  ASCEND_DCMI_RETURN_CODES(ASCEND_DCMI_RETURN_CODE)
#undef ASCEND_DCMI_RETURN_CODE
};

enum {
  DCMI_MAX_CARD_NUM = 64,
  DCMI_MAX_CHIP_NAME_LEN = 32,
  DCMI_MAX_LENTH = 256,
  DCMI_MAX_VER_LEN = 255,
  DCMI_DIE_ID_COUNT = 5,
  DCMI_MAX_CORE_NUM = 16,
  DCMI_MAX_ERROR_CODES = 128,
  DCMI_MAX_PROCESSES = 32,
  DCMI_PRODUCT_TYPE_LEN = 64,
  DCMI_CPU_AFFINITY_LEN = 32,
  DCMI_VDEV_ALL = 65535,  // dcmi_set_destroy_vdevice: every vNPU of the chip
};
enum { DCMI_VDEVICE_MODE_CONTAINER = 0, DCMI_VDEVICE_MODE_VM = 1 };
#define DCMI_HEALTH_ABSENT 0xFFFFFFFFu   // the chip is gone or has not started
#define DCMI_VDEV_AUTOMATIC 0xFFFFFFFFu  // create: the library chooses vdev_id or vfg_id

// Types of dcmi_get_device_utilization_rate.
enum {
  DCMI_UTILIZATION_DDR = 1,
  DCMI_UTILIZATION_AICORE = 2,
  DCMI_UTILIZATION_AICPU = 3,
  DCMI_UTILIZATION_CTRLCPU = 4,
  DCMI_UTILIZATION_DDR_BANDWIDTH = 5,
  DCMI_UTILIZATION_HBM = 6,
  DCMI_UTILIZATION_HBM_BANDWIDTH = 10,
  DCMI_UTILIZATION_VECTOR = 12,
  DCMI_UTILIZATION_NPU = 13,
  DCMI_UTILIZATION_CUBE = 14,
};

// Results of the topology query. Older libraries say "unknown" with 6.
enum {
  DCMI_TOPO_SELF = 0,
  DCMI_TOPO_SYS = 1,
  DCMI_TOPO_PHB = 2,
  DCMI_TOPO_HCCS = 3,
  DCMI_TOPO_PXB = 4,
  DCMI_TOPO_PIX = 5,
  DCMI_TOPO_SIO = 6,
  DCMI_TOPO_HCCS_SW = 7,
  DCMI_TOPO_UB = 8,
};

// Sub-commands of dcmi_get_device_info, by main command.
enum {
  DCMI_SUB_VDEV_ONE = 0,
  DCMI_SUB_VDEV_TOTAL = 1,
  DCMI_SUB_VDEV_FREE = 2,
  DCMI_SUB_VDEV_SRIOV = 3,
  DCMI_SUB_VDEV_ACTIVITY = 5,
  DCMI_SUB_CHIP_ID = 0,
  DCMI_SUB_CHIP_SPOD = 1,
  DCMI_SUB_CHIP_SPOD_STATUS = 2,
  DCMI_SUB_HCCS_STATUS = 0,
  DCMI_SUB_HCCS_LANE = 1,
  DCMI_SUB_HCCS_STATISTIC = 3,
  DCMI_SUB_HCCS_STATISTIC_U64 = 5,
  DCMI_SUB_SIO_CRC = 0,
  DCMI_SUB_PCIE_LINK_ERRORS = 1,
};

// Bits of dcmi_event_filter.filter_flag; 0 = no filter. SEVERITY means this level and above.
enum { DCMI_FILTER_EVENT_ID = 1, DCMI_FILTER_SEVERITY = 2, DCMI_FILTER_NODE_TYPE = 4 };

ASCEND_DCMI_ENUM(dcmi_unit_type){DCMI_UNIT_NPU = 0, DCMI_UNIT_MCU = 1, DCMI_UNIT_CPU = 2,
                                 DCMI_UNIT_INVALID = 0xFF};
ASCEND_DCMI_ENUM(dcmi_die_type){DCMI_DIE_NDIE = 0, DCMI_DIE_VDIE = 1, DCMI_DIE_DDIE = 2,
                                DCMI_DIE_INVALID = 3};
ASCEND_DCMI_ENUM(dcmi_reset_channel){DCMI_RESET_OUTBAND = 0, DCMI_RESET_INBAND = 1};
ASCEND_DCMI_ENUM(dcmi_boot_status){DCMI_BOOT_UNINIT = 0, DCMI_BOOT_BIOS = 1, DCMI_BOOT_OS = 2,
                                   DCMI_BOOT_FINISH = 3, DCMI_BOOT_SYSTEM_START_FINISH = 16};
// What dcmi_get_device_ecc_info counts.
ASCEND_DCMI_ENUM(dcmi_device_type){DCMI_ECC_DDR = 0,
                                   DCMI_ECC_SRAM = 1,
                                   DCMI_ECC_HBM = 2,
                                   DCMI_ECC_NPU = 3,
                                   DCMI_ECC_HBM_RECORDED_SINGLE = 4,
                                   DCMI_ECC_HBM_RECORDED_MULTI = 5,
                                   DCMI_ECC_NONE = 0xff};
ASCEND_DCMI_ENUM(dcmi_freq_type){DCMI_FREQ_DDR = 1,        DCMI_FREQ_CTRLCPU = 2,
                                 DCMI_FREQ_HBM = 6,        DCMI_FREQ_AICORE_CURRENT = 7,
                                 DCMI_FREQ_AICORE_MAX = 9, DCMI_FREQ_VECTORCORE_CURRENT = 12};
ASCEND_DCMI_ENUM(dcmi_rdfx_detect_result){DCMI_RDFX_OK = 0,
                                          DCMI_RDFX_SOCK_FAIL = 1,
                                          DCMI_RDFX_RECV_TIMEOUT = 2,
                                          DCMI_RDFX_UNREACH = 3,
                                          DCMI_RDFX_TIME_EXCEEDED = 4,
                                          DCMI_RDFX_FAULT = 5,
                                          DCMI_RDFX_INIT = 6 /* neutral */,
                                          DCMI_RDFX_THREAD_ERR = 7,
                                          DCMI_RDFX_IP_SET = 8,
                                          DCMI_RDFX_MAX = 0xFF};
ASCEND_DCMI_ENUM(dcmi_port_type){DCMI_PORT_VNIC = 0, DCMI_PORT_ROCE = 1};
ASCEND_DCMI_ENUM(dcmi_ip_addr_type){DCMI_IP_V4 = 0, DCMI_IP_V6 = 1, DCMI_IP_ANY = 2};
ASCEND_DCMI_ENUM(dcmi_event_type){DCMI_EVENT_DMS_FAULT = 0};
ASCEND_DCMI_ENUM(dcmi_multi_die_policy){DCMI_MULTI_DIE_UNION = 0 /* both dies into one container */,
                                        DCMI_MULTI_DIE_INDEPENDENT = 1, DCMI_MULTI_DIE_MAX = 2};
// Values beyond the first are not known to us; dcmiv2_get_device_component_list only needs the
// type.
ASCEND_DCMI_ENUM(dcmi_component_type){DCMI_COMPONENT_FIRST = 0};
ASCEND_DCMI_ENUM(dcmi_main_cmd){DCMI_CMD_DVPP = 0,
                                DCMI_CMD_LP = 8,
                                DCMI_CMD_MEMORY = 9,
                                DCMI_CMD_TS = 11,
                                DCMI_CMD_CHIP_INF = 12,
                                DCMI_CMD_QOS = 13,
                                DCMI_CMD_SOC_INFO = 14,
                                DCMI_CMD_HCCS = 16,
                                DCMI_CMD_HOST_AICPU = 17,
                                DCMI_CMD_TEMP = 50,
                                DCMI_CMD_SVM = 51,
                                DCMI_CMD_VDEV_MNG = 52,
                                DCMI_CMD_SEC = 53,
                                DCMI_CMD_PCIE = 55,
                                DCMI_CMD_SIO = 56,
                                DCMI_CMD_EX_COMPUTING = 0x8000,
                                DCMI_CMD_DEVICE_SHARE = 0x8001,
                                DCMI_CMD_EX_CERT = 0x8003};

struct dcmi_chip_info {
  unsigned char chip_type[32];
  unsigned char chip_name[32];
  unsigned char chip_ver[32];
  unsigned int aicore_cnt;
};

struct dcmi_chip_info_v2 {
  unsigned char chip_type[32];
  unsigned char chip_name[32];
  unsigned char chip_ver[32];
  unsigned int aicore_cnt;
  unsigned char npu_name[32];
};

// Has no PCI domain; prefer dcmi_pcie_info_all.
struct dcmi_pcie_info {
  unsigned int deviceid;
  unsigned int venderid;
  unsigned int subvenderid;
  unsigned int subdeviceid;
  unsigned int bdf_deviceid;
  unsigned int bdf_busid;
  unsigned int bdf_funcid;
};

struct dcmi_pcie_info_all {
  unsigned int venderid;
  unsigned int subvenderid;
  unsigned int deviceid;
  unsigned int subdeviceid;
  int domain;
  unsigned int bdf_busid;
  unsigned int bdf_deviceid;
  unsigned int bdf_funcid;
  unsigned char reserve[32];
};

struct dcmi_board_info {
  unsigned int board_id;
  unsigned int pcb_id;
  unsigned int bom_id;
  unsigned int slot_id;
};

struct dcmi_elabel_info {
  char product_name[256];
  char model[256];
  char manufacturer[256];
  char manufacturer_date[256];
  char serial_number[256];
};

struct dcmi_die_id {
  unsigned int soc_die[5];
};

struct dcmi_aicore_info {
  unsigned int freq;
  unsigned int cur_freq;
};

struct dcmi_aicpu_info {
  unsigned int max_freq;
  unsigned int cur_freq;
  unsigned int aicpu_num;
  unsigned int util_rate[16];
};

struct dcmi_ecc_info {
  int enable_flag;
  unsigned int single_bit_error_cnt;
  unsigned int double_bit_error_cnt;
  unsigned int total_single_bit_error_cnt;
  unsigned int total_double_bit_error_cnt;
  unsigned int single_bit_isolated_pages_cnt;
  unsigned int double_bit_isolated_pages_cnt;
};

// Sizes in MB.
struct dcmi_hbm_info {
  unsigned long long memory_size;
  unsigned int freq;
  unsigned long long memory_usage;
  int temp;
  unsigned int bandwith_util_rate;
};

// Sizes in MB.
struct dcmi_memory_info {
  unsigned long long memory_size;
  unsigned int freq;
  unsigned int utiliza;
};

// Sizes in MB, hugepagesize in KB. The ABI's own comment says 96 bytes; on LP64 it is 112.
struct dcmi_get_memory_info_stru {
  unsigned long long memory_size;
  unsigned long long memory_available;
  unsigned int freq;
  unsigned long hugepagesize;
  unsigned long hugepages_total;
  unsigned long hugepages_free;
  unsigned int utiliza;
  unsigned char reserve[60];
};

struct dcmi_ip_addr {
  union {
    unsigned char ip4[4];
    unsigned char ip6[16];
  } u_addr;
  enum dcmi_ip_addr_type ip_type;
};

// Memory in bytes; the process id is the host's for a privileged caller.
struct dcmi_proc_mem_info {
  int proc_id;
  unsigned long proc_mem_usage;
};

struct dcmi_event_filter {
  unsigned long long filter_flag;
  unsigned int event_id;
  unsigned char severity;
  unsigned char node_type;
  unsigned char resv[32];
};

struct dcmi_dms_fault_event {
  unsigned int event_id;
  unsigned short deviceid;
  unsigned char node_type;
  unsigned char node_id;
  unsigned char sub_node_type;
  unsigned char sub_node_id;
  unsigned char severity;
  unsigned char assertion;
  int event_serial_num;
  int notify_serial_num;
  unsigned long long alarm_raised_time;
  char event_name[256];
  char additional_info[32];
  unsigned char os_id;
  unsigned char resv_1[1];
  unsigned short node_type_ex;
  unsigned short sub_node_type_ex;
  unsigned char resv_2[2];
  unsigned char resv[24];
};

struct dcmi_event {
  enum dcmi_event_type type;
  union {
    struct dcmi_dms_fault_event dms_event;
  } event_t;
};

struct dcmi_base_resource {
  unsigned long long token;
  unsigned long long token_max;
  unsigned long long task_timeout;
  unsigned int vfg_id;
  unsigned char vip_mode;
  unsigned char reserved[31];
};

// memory_size in MB; device_aicpu 0xffff = shared AICPU.
struct dcmi_computing_resource {
  float aic;
  float aiv;
  unsigned short dsa;
  unsigned short rtsq;
  unsigned short acsq;
  unsigned short cdqm;
  unsigned short c_core;
  unsigned short ffts;
  unsigned short sdma;
  unsigned short pcie_dma;
  unsigned long long memory_size;
  unsigned int event_id;
  unsigned int notify_id;
  unsigned int stream_id;
  unsigned int model_id;
  unsigned short topic_schedule_aicpu;
  unsigned short host_ctrl_cpu;
  unsigned short host_aicpu;
  unsigned short device_aicpu;
  unsigned short topic_ctrl_cpu_slot;
  unsigned int vdev_aicore_utilization;
  unsigned long long vdev_memory_total;
  unsigned long long vdev_memory_free;
  unsigned char reserved[12];
};

struct dcmi_media_resource {
  float jpegd;
  float jpege;
  float vpc;
  float vdec;
  float pngd;
  float venc;
  unsigned char reserved[32];
};

struct dcmi_create_vdev_out {
  unsigned int vdev_id;
  unsigned int pcie_bus;
  unsigned int pcie_device;
  unsigned int pcie_func;
  unsigned int vfg_id;
  unsigned char reserved[32];
};

struct dcmi_create_vdev_res_stru {
  unsigned int vdev_id;
  unsigned int vfg_id;
  char template_name[32];
  unsigned char reserved[64];
};

struct dcmi_vdev_query_info {
  char name[16];
  unsigned int status;
  unsigned int is_container_used;
  unsigned int vfid;
  unsigned int vfg_id;
  unsigned long long container_id;
  struct dcmi_base_resource base;
  struct dcmi_computing_resource computing;
  struct dcmi_media_resource media;
};

struct dcmi_vdev_query_stru {
  unsigned int vdev_id;
  struct dcmi_vdev_query_info query_info;
};

struct dcmi_soc_free_resource {
  unsigned int vfg_num;
  unsigned int vfg_bitmap;
  struct dcmi_base_resource base;
  struct dcmi_computing_resource computing;
  struct dcmi_media_resource media;
};

struct dcmi_soc_total_resource {
  unsigned int vdev_num;
  unsigned int vdev_id[32];
  unsigned int vfg_num;
  unsigned int vfg_bitmap;
  struct dcmi_base_resource base;
  struct dcmi_computing_resource computing;
  struct dcmi_media_resource media;
};

// profiling_time (ms) is an input, and the call takes that long. Order MIN, MAX, AVG.
struct dcmi_pcie_link_bandwidth_info {
  int profiling_time;
  unsigned int tx_p_bw[3];
  unsigned int tx_np_bw[3];
  unsigned int tx_cpl_bw[3];
  unsigned int tx_np_lantency[3];
  unsigned int rx_p_bw[3];
  unsigned int rx_np_bw[3];
  unsigned int rx_cpl_bw[3];
};

struct dcmi_multi_utilization_info {
  unsigned int aic_util;
  unsigned int aiv_util;
  unsigned int aicore_util;
  unsigned int npu_util;
  unsigned int reserved[8];
};

struct dcmi_spod_info {
  unsigned int sdid;
  unsigned int super_pod_size;
  unsigned int super_pod_id;
  unsigned int server_index;
  unsigned int chassis_id;
  unsigned int super_pod_type;
  unsigned int reserve[6];
};

struct dcmi_hccs_statistic_info {
  unsigned int tx_cnt[16];
  unsigned int rx_cnt[16];
  unsigned int crc_err_cnt[16];
  unsigned int retry_cnt[16];
  unsigned int reserved_field_cnt[64];
};

struct dcmi_hccs_statistic_info_u64 {
  unsigned long long tx_cnt[16];
  unsigned long long rx_cnt[16];
  unsigned long long crc_err_cnt[16];
  unsigned long long retry_cnt[16];
  unsigned long long reserved[64];
};

struct dcmi_hccs_bandwidth_info {
  int profiling_time;
  double total_txbw;
  double total_rxbw;
  double tx_bandwidth[16];
  double rx_bandwidth[16];
};

struct dcmi_sio_crc_err_statistics_info {
  unsigned short tx_error_count;
  unsigned short rx_error_count;
  unsigned char reserved[8];
};

typedef void (*dcmi_fault_event_callback)(struct dcmi_event* event);

// The functions. Every one returns int, 0 = OK. X(name, (parameters)).
//
// Traps: the logic-id look-ups put their outputs first; dcmiv2_get_device_list puts the list before
// the count, dcmi_get_card_list the count before the list; struct dcmi_event_filter goes by value.
// clang-format off
#define ASCEND_DCMI_CHIP int card_id, int device_id

#define ASCEND_DCMI_V1_FUNCTIONS(X) \
  X(dcmi_init, (void)) \
  X(dcmi_get_dcmi_version, (char* ver, unsigned len)) \
  X(dcmi_get_driver_version, (char* ver, unsigned len)) \
  X(dcmi_get_card_list, (int* card_num, int* card_list, int list_len)) \
  X(dcmi_get_card_num_list, (int* card_num, int* card_list, int list_len)) \
  X(dcmi_get_all_device_count, (int* count)) \
  X(dcmi_get_device_num_in_card, (int card, int* num)) \
  X(dcmi_get_device_id_in_card, (int card, int* device_id_max, int* mcu_id, int* cpu_id)) \
  X(dcmi_get_device_type, (ASCEND_DCMI_CHIP, enum dcmi_unit_type* type)) \
  X(dcmi_get_device_logic_id, (int* logic_id, ASCEND_DCMI_CHIP)) \
  X(dcmi_get_device_phyid_from_logicid, (unsigned logic, unsigned* phy)) \
  X(dcmi_get_device_logicid_from_phyid, (unsigned phy, unsigned* logic)) \
  X(dcmi_get_card_id_device_id_from_logicid, (int* card, int* dev, unsigned logic)) \
  X(dcmi_get_card_id_device_id_from_phyid, (int* card, int* dev, unsigned phy)) \
  X(dcmi_get_device_chip_info, (ASCEND_DCMI_CHIP, struct dcmi_chip_info*)) \
  X(dcmi_get_device_chip_info_v2, (ASCEND_DCMI_CHIP, struct dcmi_chip_info_v2*)) \
  X(dcmi_get_device_pcie_info, (ASCEND_DCMI_CHIP, struct dcmi_pcie_info*)) \
  X(dcmi_get_device_pcie_info_v2, (ASCEND_DCMI_CHIP, struct dcmi_pcie_info_all*)) \
  X(dcmi_get_device_board_info, (ASCEND_DCMI_CHIP, struct dcmi_board_info*)) \
  X(dcmi_get_mainboard_id, (ASCEND_DCMI_CHIP, unsigned* id)) \
  X(dcmi_get_product_type, (ASCEND_DCMI_CHIP, char* str, int buf_size)) \
  X(dcmi_get_card_elabel_v2, (int card, struct dcmi_elabel_info*)) \
  X(dcmi_get_device_elabel_info, (ASCEND_DCMI_CHIP, struct dcmi_elabel_info*)) \
  X(dcmi_get_device_die_v2, (ASCEND_DCMI_CHIP, enum dcmi_die_type, struct dcmi_die_id*)) \
  X(dcmi_get_device_boot_status, (ASCEND_DCMI_CHIP, enum dcmi_boot_status*)) \
  X(dcmi_get_npu_work_mode, (int card, unsigned char* mode)) \
  X(dcmi_get_affinity_cpu_info_by_device_id, (ASCEND_DCMI_CHIP, char* cpus, int* length)) \
  X(dcmi_get_topo_info_by_device_id, (int card1, int dev1, int card2, int dev2, int* topo_type)) \
  X(dcmi_get_device_health, (ASCEND_DCMI_CHIP, unsigned* health)) \
  X(dcmi_get_device_errorcode_v2, (ASCEND_DCMI_CHIP, int* count, unsigned* list, \
      unsigned list_len)) \
  X(dcmi_get_device_errorcode_string, (ASCEND_DCMI_CHIP, unsigned code, \
      unsigned char* info, int buf_size)) \
  X(dcmi_subscribe_fault_event, (ASCEND_DCMI_CHIP, struct dcmi_event_filter filter, \
      dcmi_fault_event_callback handler)) \
  X(dcmi_get_fault_event, (ASCEND_DCMI_CHIP, int timeout, \
      struct dcmi_event_filter filter, struct dcmi_event* event)) \
  X(dcmi_get_device_temperature, (ASCEND_DCMI_CHIP, int* celsius)) \
  X(dcmi_get_device_voltage, (ASCEND_DCMI_CHIP, unsigned* centivolt)) \
  X(dcmi_get_device_power_info, (ASCEND_DCMI_CHIP, int* deciwatt)) \
  X(dcmi_mcu_get_power_info, (int card, int* deciwatt)) \
  X(dcmi_get_device_utilization_rate, (ASCEND_DCMI_CHIP, int type, unsigned* percent)) \
  X(dcmi_get_device_multi_utilization_rate, (ASCEND_DCMI_CHIP, \
      struct dcmi_multi_utilization_info*)) \
  X(dcmi_get_device_frequency, (ASCEND_DCMI_CHIP, enum dcmi_freq_type, unsigned* mhz)) \
  X(dcmi_get_device_hbm_info, (ASCEND_DCMI_CHIP, struct dcmi_hbm_info*)) \
  X(dcmi_get_device_memory_info_v2, (ASCEND_DCMI_CHIP, struct dcmi_memory_info*)) \
  X(dcmi_get_device_memory_info_v3, (ASCEND_DCMI_CHIP, struct dcmi_get_memory_info_stru*)) \
  X(dcmi_get_device_aicore_info, (ASCEND_DCMI_CHIP, struct dcmi_aicore_info*)) \
  X(dcmi_get_device_aicpu_info, (ASCEND_DCMI_CHIP, struct dcmi_aicpu_info*)) \
  X(dcmi_get_device_ecc_info, (ASCEND_DCMI_CHIP, enum dcmi_device_type, struct dcmi_ecc_info*)) \
  X(dcmi_get_device_resource_info, (ASCEND_DCMI_CHIP, struct dcmi_proc_mem_info* list, int* num)) \
  X(dcmi_get_device_network_health, (ASCEND_DCMI_CHIP, enum dcmi_rdfx_detect_result*)) \
  X(dcmi_get_device_ip, (ASCEND_DCMI_CHIP, enum dcmi_port_type, int port_id, \
      struct dcmi_ip_addr* ip, struct dcmi_ip_addr* mask)) \
  X(dcmi_get_device_gateway, (ASCEND_DCMI_CHIP, enum dcmi_port_type, int port_id, \
      struct dcmi_ip_addr* gw)) \
  X(dcmi_get_pcie_link_bandwidth_info, (ASCEND_DCMI_CHIP, struct dcmi_pcie_link_bandwidth_info*)) \
  X(dcmi_get_hccs_link_bandwidth_info, (ASCEND_DCMI_CHIP, struct dcmi_hccs_bandwidth_info*)) \
  X(dcmi_get_device_info, (ASCEND_DCMI_CHIP, enum dcmi_main_cmd, unsigned sub_cmd, \
      void* buf, unsigned* size)) \
  X(dcmi_create_vdevice, (ASCEND_DCMI_CHIP, struct dcmi_create_vdev_res_stru* vdev, \
      struct dcmi_create_vdev_out* out)) \
  X(dcmi_set_destroy_vdevice, (ASCEND_DCMI_CHIP, unsigned vdev_id)) \
  X(dcmi_get_vdevice_mode, (int* mode)) \
  X(dcmi_set_vdevice_mode, (int mode)) \
  X(dcmi_get_vnpu_config_recover_mode, (unsigned* mode)) \
  X(dcmi_set_vnpu_config_recover_mode, (unsigned mode)) \
  X(dcmi_get_device_share_enable, (ASCEND_DCMI_CHIP, int* flag)) \
  X(dcmi_set_device_share_enable, (ASCEND_DCMI_CHIP, int flag)) \
  X(dcmi_get_multi_die_policy, (enum dcmi_multi_die_policy*)) \
  X(dcmi_set_multi_die_policy, (enum dcmi_multi_die_policy)) \
  X(dcmi_set_device_reset, (ASCEND_DCMI_CHIP, enum dcmi_reset_channel)) \
  X(dcmi_get_device_outband_channel_state, (ASCEND_DCMI_CHIP, int* state)) \
  X(dcmi_pre_reset_soc, (ASCEND_DCMI_CHIP)) \
  X(dcmi_rescan_soc, (ASCEND_DCMI_CHIP)) \
  X(dcmi_set_device_pre_reset, (ASCEND_DCMI_CHIP)) \
  X(dcmi_set_device_rescan, (ASCEND_DCMI_CHIP)) \
  X(dcmi_get_netdev_brother_device, (ASCEND_DCMI_CHIP, int* brother_card_id))

#define ASCEND_DCMI_V2_FUNCTIONS(X) \
  X(dcmiv2_init, (void)) \
  X(dcmiv2_get_device_list, (int* device_list, int* device_cnt, int list_len)) \
  X(dcmiv2_get_all_device_count, (int* count)) \
  X(dcmiv2_get_chip_phy_id_by_dev_id, (int dev, unsigned* phy)) \
  X(dcmiv2_get_dev_id_by_chip_phy_id, (int phy, unsigned* dev)) \
  X(dcmiv2_get_device_type, (int dev, enum dcmi_unit_type*)) \
  X(dcmiv2_get_device_chip_info, (int dev, struct dcmi_chip_info_v2*)) \
  X(dcmiv2_get_device_pcie_info, (int dev, struct dcmi_pcie_info_all*)) \
  X(dcmiv2_get_device_board_info, (int dev, struct dcmi_board_info*)) \
  X(dcmiv2_get_mainboard_id, (int dev, unsigned*)) \
  X(dcmiv2_get_device_elabel_info, (int dev, struct dcmi_elabel_info*)) \
  X(dcmiv2_get_device_die_id, (int dev, enum dcmi_die_type, struct dcmi_die_id*)) \
  X(dcmiv2_get_topo_info_by_device_id, (int dev1, int dev2, int* topo_type)) \
  X(dcmiv2_get_device_health, (int dev, unsigned*)) \
  X(dcmiv2_get_device_error_code_list, (int dev, int* count, unsigned* list, unsigned list_len)) \
  X(dcmiv2_subscribe_fault_event, (int dev, struct dcmi_event_filter filter, \
      dcmi_fault_event_callback handler)) \
  X(dcmiv2_get_device_power_info, (int dev, int*)) \
  X(dcmiv2_get_device_temperature, (int dev, int*)) \
  X(dcmiv2_get_device_hbm_info, (int dev, struct dcmi_hbm_info*)) \
  X(dcmiv2_get_device_utilization_rate, (int dev, int type, unsigned*)) \
  X(dcmiv2_get_device_boot_status, (int dev, enum dcmi_boot_status*)) \
  X(dcmiv2_get_device_component_list, (int dev, enum dcmi_component_type* table, unsigned count)) \
  X(dcmiv2_get_device_info, (int dev, enum dcmi_main_cmd, unsigned sub_cmd, void* buf, \
      unsigned* size)) \
  X(dcmiv2_pre_reset_device, (int dev)) \
  X(dcmiv2_rescan_device, (int dev)) \
  X(dcmiv2_reset_device, (int dev, enum dcmi_reset_channel))

// Names that clients look up and whose prototypes are not published. X(name)
#define ASCEND_DCMI_UNTYPED_FUNCTIONS(X) \
  X(dcmi_get_device_errorcode) \
  X(dcmi_get_device_multi_utilization_rate_period) \
  X(dcmi_get_eid_list_by_urma_dev_index) \
  X(dcmi_get_hccsping_mesh_info) \
  X(dcmi_get_hccsping_mesh_state) \
  X(dcmi_get_memory_info) \
  X(dcmi_get_spod_node_status) \
  X(dcmi_get_ub_ping_mesh_info) \
  X(dcmi_get_ub_ping_mesh_state) \
  X(dcmi_get_urma_device_cnt) \
  X(dcmi_set_spod_node_status) \
  X(dcmi_start_hccsping_mesh) \
  X(dcmi_start_ub_ping_mesh) \
  X(dcmi_stop_hccsping_mesh) \
  X(dcmi_stop_ub_ping_mesh) \
  X(dcmiv2_get_affinity_cpu_info_by_dev_id) \
  X(dcmiv2_get_dcmi_version) \
  X(dcmiv2_get_device_ecc_info) \
  X(dcmiv2_get_device_frequency) \
  X(dcmiv2_get_device_multi_utilization_rate) \
  X(dcmiv2_get_device_multi_utilization_rate_period) \
  X(dcmiv2_get_device_network_health) \
  X(dcmiv2_get_device_outband_channel_state) \
  X(dcmiv2_get_device_proc_mem_info) \
  X(dcmiv2_get_device_voltage) \
  X(dcmiv2_get_eid_list_by_urma_dev_index) \
  X(dcmiv2_get_pcie_link_bandwidth_info) \
  X(dcmiv2_get_port_pkt_stats_info) \
  X(dcmiv2_get_ub_ping_mesh_info) \
  X(dcmiv2_get_ub_ping_mesh_state) \
  X(dcmiv2_get_urma_device_cnt) \
  X(dcmiv2_start_ub_ping_mesh) \
  X(dcmiv2_stop_ub_ping_mesh)

// clang-format on

// name##_fn: the pointer type of each function.
// NOLINTNEXTLINE(bugprone-macro-parentheses): `parameters` brings its own
#define ASCEND_DCMI_POINTER_TYPE(name, parameters) typedef int(*name##_fn) parameters;
ASCEND_DCMI_V1_FUNCTIONS(ASCEND_DCMI_POINTER_TYPE)
ASCEND_DCMI_V2_FUNCTIONS(ASCEND_DCMI_POINTER_TYPE)
#undef ASCEND_DCMI_POINTER_TYPE

#define ASCEND_DCMI_SIZE(type, size) ASCEND_DCMI_ASSERT(sizeof(struct type) == (size))
#define ASCEND_DCMI_AT(type, field, offset) \
  ASCEND_DCMI_ASSERT(offsetof(struct type, field) == (offset))
ASCEND_DCMI_SIZE(dcmi_chip_info, 100);
ASCEND_DCMI_AT(dcmi_chip_info, chip_type, 0);
ASCEND_DCMI_AT(dcmi_chip_info, chip_name, 32);
ASCEND_DCMI_AT(dcmi_chip_info, chip_ver, 64);
ASCEND_DCMI_AT(dcmi_chip_info, aicore_cnt, 96);
ASCEND_DCMI_SIZE(dcmi_chip_info_v2, 132);
ASCEND_DCMI_AT(dcmi_chip_info_v2, chip_type, 0);
ASCEND_DCMI_AT(dcmi_chip_info_v2, chip_name, 32);
ASCEND_DCMI_AT(dcmi_chip_info_v2, chip_ver, 64);
ASCEND_DCMI_AT(dcmi_chip_info_v2, aicore_cnt, 96);
ASCEND_DCMI_AT(dcmi_chip_info_v2, npu_name, 100);
ASCEND_DCMI_SIZE(dcmi_pcie_info, 28);
ASCEND_DCMI_AT(dcmi_pcie_info, deviceid, 0);
ASCEND_DCMI_AT(dcmi_pcie_info, venderid, 4);
ASCEND_DCMI_AT(dcmi_pcie_info, subvenderid, 8);
ASCEND_DCMI_AT(dcmi_pcie_info, subdeviceid, 12);
ASCEND_DCMI_AT(dcmi_pcie_info, bdf_deviceid, 16);
ASCEND_DCMI_AT(dcmi_pcie_info, bdf_busid, 20);
ASCEND_DCMI_AT(dcmi_pcie_info, bdf_funcid, 24);
ASCEND_DCMI_SIZE(dcmi_pcie_info_all, 64);
ASCEND_DCMI_AT(dcmi_pcie_info_all, venderid, 0);
ASCEND_DCMI_AT(dcmi_pcie_info_all, subvenderid, 4);
ASCEND_DCMI_AT(dcmi_pcie_info_all, deviceid, 8);
ASCEND_DCMI_AT(dcmi_pcie_info_all, subdeviceid, 12);
ASCEND_DCMI_AT(dcmi_pcie_info_all, domain, 16);
ASCEND_DCMI_AT(dcmi_pcie_info_all, bdf_busid, 20);
ASCEND_DCMI_AT(dcmi_pcie_info_all, bdf_deviceid, 24);
ASCEND_DCMI_AT(dcmi_pcie_info_all, bdf_funcid, 28);
ASCEND_DCMI_AT(dcmi_pcie_info_all, reserve, 32);
ASCEND_DCMI_SIZE(dcmi_board_info, 16);
ASCEND_DCMI_AT(dcmi_board_info, board_id, 0);
ASCEND_DCMI_AT(dcmi_board_info, pcb_id, 4);
ASCEND_DCMI_AT(dcmi_board_info, bom_id, 8);
ASCEND_DCMI_AT(dcmi_board_info, slot_id, 12);
ASCEND_DCMI_SIZE(dcmi_elabel_info, 1280);
ASCEND_DCMI_AT(dcmi_elabel_info, product_name, 0);
ASCEND_DCMI_AT(dcmi_elabel_info, model, 256);
ASCEND_DCMI_AT(dcmi_elabel_info, manufacturer, 512);
ASCEND_DCMI_AT(dcmi_elabel_info, manufacturer_date, 768);
ASCEND_DCMI_AT(dcmi_elabel_info, serial_number, 1024);
ASCEND_DCMI_SIZE(dcmi_die_id, 20);
ASCEND_DCMI_AT(dcmi_die_id, soc_die, 0);
ASCEND_DCMI_SIZE(dcmi_aicore_info, 8);
ASCEND_DCMI_AT(dcmi_aicore_info, freq, 0);
ASCEND_DCMI_AT(dcmi_aicore_info, cur_freq, 4);
ASCEND_DCMI_SIZE(dcmi_aicpu_info, 76);
ASCEND_DCMI_AT(dcmi_aicpu_info, max_freq, 0);
ASCEND_DCMI_AT(dcmi_aicpu_info, cur_freq, 4);
ASCEND_DCMI_AT(dcmi_aicpu_info, aicpu_num, 8);
ASCEND_DCMI_AT(dcmi_aicpu_info, util_rate, 12);
ASCEND_DCMI_SIZE(dcmi_ecc_info, 28);
ASCEND_DCMI_AT(dcmi_ecc_info, enable_flag, 0);
ASCEND_DCMI_AT(dcmi_ecc_info, single_bit_error_cnt, 4);
ASCEND_DCMI_AT(dcmi_ecc_info, double_bit_error_cnt, 8);
ASCEND_DCMI_AT(dcmi_ecc_info, total_single_bit_error_cnt, 12);
ASCEND_DCMI_AT(dcmi_ecc_info, total_double_bit_error_cnt, 16);
ASCEND_DCMI_AT(dcmi_ecc_info, single_bit_isolated_pages_cnt, 20);
ASCEND_DCMI_AT(dcmi_ecc_info, double_bit_isolated_pages_cnt, 24);
ASCEND_DCMI_SIZE(dcmi_hbm_info, 32);
ASCEND_DCMI_AT(dcmi_hbm_info, memory_size, 0);
ASCEND_DCMI_AT(dcmi_hbm_info, freq, 8);
ASCEND_DCMI_AT(dcmi_hbm_info, memory_usage, 16);
ASCEND_DCMI_AT(dcmi_hbm_info, temp, 24);
ASCEND_DCMI_AT(dcmi_hbm_info, bandwith_util_rate, 28);
ASCEND_DCMI_SIZE(dcmi_memory_info, 16);
ASCEND_DCMI_AT(dcmi_memory_info, memory_size, 0);
ASCEND_DCMI_AT(dcmi_memory_info, freq, 8);
ASCEND_DCMI_AT(dcmi_memory_info, utiliza, 12);
ASCEND_DCMI_SIZE(dcmi_get_memory_info_stru, 112);
ASCEND_DCMI_AT(dcmi_get_memory_info_stru, memory_size, 0);
ASCEND_DCMI_AT(dcmi_get_memory_info_stru, memory_available, 8);
ASCEND_DCMI_AT(dcmi_get_memory_info_stru, freq, 16);
ASCEND_DCMI_AT(dcmi_get_memory_info_stru, hugepagesize, 24);
ASCEND_DCMI_AT(dcmi_get_memory_info_stru, hugepages_total, 32);
ASCEND_DCMI_AT(dcmi_get_memory_info_stru, hugepages_free, 40);
ASCEND_DCMI_AT(dcmi_get_memory_info_stru, utiliza, 48);
ASCEND_DCMI_AT(dcmi_get_memory_info_stru, reserve, 52);
ASCEND_DCMI_SIZE(dcmi_ip_addr, 20);
ASCEND_DCMI_AT(dcmi_ip_addr, u_addr, 0);
ASCEND_DCMI_AT(dcmi_ip_addr, ip_type, 16);
ASCEND_DCMI_SIZE(dcmi_proc_mem_info, 16);
ASCEND_DCMI_AT(dcmi_proc_mem_info, proc_id, 0);
ASCEND_DCMI_AT(dcmi_proc_mem_info, proc_mem_usage, 8);
ASCEND_DCMI_SIZE(dcmi_event_filter, 48);
ASCEND_DCMI_AT(dcmi_event_filter, filter_flag, 0);
ASCEND_DCMI_AT(dcmi_event_filter, event_id, 8);
ASCEND_DCMI_AT(dcmi_event_filter, severity, 12);
ASCEND_DCMI_AT(dcmi_event_filter, node_type, 13);
ASCEND_DCMI_AT(dcmi_event_filter, resv, 14);
ASCEND_DCMI_SIZE(dcmi_dms_fault_event, 352);
ASCEND_DCMI_AT(dcmi_dms_fault_event, event_id, 0);
ASCEND_DCMI_AT(dcmi_dms_fault_event, deviceid, 4);
ASCEND_DCMI_AT(dcmi_dms_fault_event, node_type, 6);
ASCEND_DCMI_AT(dcmi_dms_fault_event, node_id, 7);
ASCEND_DCMI_AT(dcmi_dms_fault_event, sub_node_type, 8);
ASCEND_DCMI_AT(dcmi_dms_fault_event, sub_node_id, 9);
ASCEND_DCMI_AT(dcmi_dms_fault_event, severity, 10);
ASCEND_DCMI_AT(dcmi_dms_fault_event, assertion, 11);
ASCEND_DCMI_AT(dcmi_dms_fault_event, event_serial_num, 12);
ASCEND_DCMI_AT(dcmi_dms_fault_event, notify_serial_num, 16);
ASCEND_DCMI_AT(dcmi_dms_fault_event, alarm_raised_time, 24);
ASCEND_DCMI_AT(dcmi_dms_fault_event, event_name, 32);
ASCEND_DCMI_AT(dcmi_dms_fault_event, additional_info, 288);
ASCEND_DCMI_AT(dcmi_dms_fault_event, os_id, 320);
ASCEND_DCMI_AT(dcmi_dms_fault_event, resv_1, 321);
ASCEND_DCMI_AT(dcmi_dms_fault_event, node_type_ex, 322);
ASCEND_DCMI_AT(dcmi_dms_fault_event, sub_node_type_ex, 324);
ASCEND_DCMI_AT(dcmi_dms_fault_event, resv_2, 326);
ASCEND_DCMI_AT(dcmi_dms_fault_event, resv, 328);
ASCEND_DCMI_SIZE(dcmi_event, 360);
ASCEND_DCMI_AT(dcmi_event, type, 0);
ASCEND_DCMI_AT(dcmi_event, event_t, 8);
ASCEND_DCMI_SIZE(dcmi_base_resource, 64);
ASCEND_DCMI_AT(dcmi_base_resource, token, 0);
ASCEND_DCMI_AT(dcmi_base_resource, token_max, 8);
ASCEND_DCMI_AT(dcmi_base_resource, task_timeout, 16);
ASCEND_DCMI_AT(dcmi_base_resource, vfg_id, 24);
ASCEND_DCMI_AT(dcmi_base_resource, vip_mode, 28);
ASCEND_DCMI_AT(dcmi_base_resource, reserved, 29);
ASCEND_DCMI_SIZE(dcmi_computing_resource, 96);
ASCEND_DCMI_AT(dcmi_computing_resource, aic, 0);
ASCEND_DCMI_AT(dcmi_computing_resource, aiv, 4);
ASCEND_DCMI_AT(dcmi_computing_resource, dsa, 8);
ASCEND_DCMI_AT(dcmi_computing_resource, rtsq, 10);
ASCEND_DCMI_AT(dcmi_computing_resource, acsq, 12);
ASCEND_DCMI_AT(dcmi_computing_resource, cdqm, 14);
ASCEND_DCMI_AT(dcmi_computing_resource, c_core, 16);
ASCEND_DCMI_AT(dcmi_computing_resource, ffts, 18);
ASCEND_DCMI_AT(dcmi_computing_resource, sdma, 20);
ASCEND_DCMI_AT(dcmi_computing_resource, pcie_dma, 22);
ASCEND_DCMI_AT(dcmi_computing_resource, memory_size, 24);
ASCEND_DCMI_AT(dcmi_computing_resource, event_id, 32);
ASCEND_DCMI_AT(dcmi_computing_resource, notify_id, 36);
ASCEND_DCMI_AT(dcmi_computing_resource, stream_id, 40);
ASCEND_DCMI_AT(dcmi_computing_resource, model_id, 44);
ASCEND_DCMI_AT(dcmi_computing_resource, topic_schedule_aicpu, 48);
ASCEND_DCMI_AT(dcmi_computing_resource, host_ctrl_cpu, 50);
ASCEND_DCMI_AT(dcmi_computing_resource, host_aicpu, 52);
ASCEND_DCMI_AT(dcmi_computing_resource, device_aicpu, 54);
ASCEND_DCMI_AT(dcmi_computing_resource, topic_ctrl_cpu_slot, 56);
ASCEND_DCMI_AT(dcmi_computing_resource, vdev_aicore_utilization, 60);
ASCEND_DCMI_AT(dcmi_computing_resource, vdev_memory_total, 64);
ASCEND_DCMI_AT(dcmi_computing_resource, vdev_memory_free, 72);
ASCEND_DCMI_AT(dcmi_computing_resource, reserved, 80);
ASCEND_DCMI_SIZE(dcmi_media_resource, 56);
ASCEND_DCMI_AT(dcmi_media_resource, jpegd, 0);
ASCEND_DCMI_AT(dcmi_media_resource, jpege, 4);
ASCEND_DCMI_AT(dcmi_media_resource, vpc, 8);
ASCEND_DCMI_AT(dcmi_media_resource, vdec, 12);
ASCEND_DCMI_AT(dcmi_media_resource, pngd, 16);
ASCEND_DCMI_AT(dcmi_media_resource, venc, 20);
ASCEND_DCMI_AT(dcmi_media_resource, reserved, 24);
ASCEND_DCMI_SIZE(dcmi_create_vdev_out, 52);
ASCEND_DCMI_AT(dcmi_create_vdev_out, vdev_id, 0);
ASCEND_DCMI_AT(dcmi_create_vdev_out, pcie_bus, 4);
ASCEND_DCMI_AT(dcmi_create_vdev_out, pcie_device, 8);
ASCEND_DCMI_AT(dcmi_create_vdev_out, pcie_func, 12);
ASCEND_DCMI_AT(dcmi_create_vdev_out, vfg_id, 16);
ASCEND_DCMI_AT(dcmi_create_vdev_out, reserved, 20);
ASCEND_DCMI_SIZE(dcmi_create_vdev_res_stru, 104);
ASCEND_DCMI_AT(dcmi_create_vdev_res_stru, vdev_id, 0);
ASCEND_DCMI_AT(dcmi_create_vdev_res_stru, vfg_id, 4);
ASCEND_DCMI_AT(dcmi_create_vdev_res_stru, template_name, 8);
ASCEND_DCMI_AT(dcmi_create_vdev_res_stru, reserved, 40);
ASCEND_DCMI_SIZE(dcmi_vdev_query_info, 256);
ASCEND_DCMI_AT(dcmi_vdev_query_info, name, 0);
ASCEND_DCMI_AT(dcmi_vdev_query_info, status, 16);
ASCEND_DCMI_AT(dcmi_vdev_query_info, is_container_used, 20);
ASCEND_DCMI_AT(dcmi_vdev_query_info, vfid, 24);
ASCEND_DCMI_AT(dcmi_vdev_query_info, vfg_id, 28);
ASCEND_DCMI_AT(dcmi_vdev_query_info, container_id, 32);
ASCEND_DCMI_AT(dcmi_vdev_query_info, base, 40);
ASCEND_DCMI_AT(dcmi_vdev_query_info, computing, 104);
ASCEND_DCMI_AT(dcmi_vdev_query_info, media, 200);
ASCEND_DCMI_SIZE(dcmi_vdev_query_stru, 264);
ASCEND_DCMI_AT(dcmi_vdev_query_stru, vdev_id, 0);
ASCEND_DCMI_AT(dcmi_vdev_query_stru, query_info, 8);
ASCEND_DCMI_SIZE(dcmi_soc_free_resource, 224);
ASCEND_DCMI_AT(dcmi_soc_free_resource, vfg_num, 0);
ASCEND_DCMI_AT(dcmi_soc_free_resource, vfg_bitmap, 4);
ASCEND_DCMI_AT(dcmi_soc_free_resource, base, 8);
ASCEND_DCMI_AT(dcmi_soc_free_resource, computing, 72);
ASCEND_DCMI_AT(dcmi_soc_free_resource, media, 168);
ASCEND_DCMI_SIZE(dcmi_soc_total_resource, 360);
ASCEND_DCMI_AT(dcmi_soc_total_resource, vdev_num, 0);
ASCEND_DCMI_AT(dcmi_soc_total_resource, vdev_id, 4);
ASCEND_DCMI_AT(dcmi_soc_total_resource, vfg_num, 132);
ASCEND_DCMI_AT(dcmi_soc_total_resource, vfg_bitmap, 136);
ASCEND_DCMI_AT(dcmi_soc_total_resource, base, 144);
ASCEND_DCMI_AT(dcmi_soc_total_resource, computing, 208);
ASCEND_DCMI_AT(dcmi_soc_total_resource, media, 304);
ASCEND_DCMI_SIZE(dcmi_pcie_link_bandwidth_info, 88);
ASCEND_DCMI_AT(dcmi_pcie_link_bandwidth_info, profiling_time, 0);
ASCEND_DCMI_AT(dcmi_pcie_link_bandwidth_info, tx_p_bw, 4);
ASCEND_DCMI_AT(dcmi_pcie_link_bandwidth_info, tx_np_bw, 16);
ASCEND_DCMI_AT(dcmi_pcie_link_bandwidth_info, tx_cpl_bw, 28);
ASCEND_DCMI_AT(dcmi_pcie_link_bandwidth_info, tx_np_lantency, 40);
ASCEND_DCMI_AT(dcmi_pcie_link_bandwidth_info, rx_p_bw, 52);
ASCEND_DCMI_AT(dcmi_pcie_link_bandwidth_info, rx_np_bw, 64);
ASCEND_DCMI_AT(dcmi_pcie_link_bandwidth_info, rx_cpl_bw, 76);
ASCEND_DCMI_SIZE(dcmi_multi_utilization_info, 48);
ASCEND_DCMI_AT(dcmi_multi_utilization_info, aic_util, 0);
ASCEND_DCMI_AT(dcmi_multi_utilization_info, aiv_util, 4);
ASCEND_DCMI_AT(dcmi_multi_utilization_info, aicore_util, 8);
ASCEND_DCMI_AT(dcmi_multi_utilization_info, npu_util, 12);
ASCEND_DCMI_AT(dcmi_multi_utilization_info, reserved, 16);
ASCEND_DCMI_SIZE(dcmi_spod_info, 48);
ASCEND_DCMI_AT(dcmi_spod_info, sdid, 0);
ASCEND_DCMI_AT(dcmi_spod_info, super_pod_size, 4);
ASCEND_DCMI_AT(dcmi_spod_info, super_pod_id, 8);
ASCEND_DCMI_AT(dcmi_spod_info, server_index, 12);
ASCEND_DCMI_AT(dcmi_spod_info, chassis_id, 16);
ASCEND_DCMI_AT(dcmi_spod_info, super_pod_type, 20);
ASCEND_DCMI_AT(dcmi_spod_info, reserve, 24);
ASCEND_DCMI_SIZE(dcmi_hccs_statistic_info, 512);
ASCEND_DCMI_AT(dcmi_hccs_statistic_info, tx_cnt, 0);
ASCEND_DCMI_AT(dcmi_hccs_statistic_info, rx_cnt, 64);
ASCEND_DCMI_AT(dcmi_hccs_statistic_info, crc_err_cnt, 128);
ASCEND_DCMI_AT(dcmi_hccs_statistic_info, retry_cnt, 192);
ASCEND_DCMI_AT(dcmi_hccs_statistic_info, reserved_field_cnt, 256);
ASCEND_DCMI_SIZE(dcmi_hccs_statistic_info_u64, 1024);
ASCEND_DCMI_AT(dcmi_hccs_statistic_info_u64, tx_cnt, 0);
ASCEND_DCMI_AT(dcmi_hccs_statistic_info_u64, rx_cnt, 128);
ASCEND_DCMI_AT(dcmi_hccs_statistic_info_u64, crc_err_cnt, 256);
ASCEND_DCMI_AT(dcmi_hccs_statistic_info_u64, retry_cnt, 384);
ASCEND_DCMI_AT(dcmi_hccs_statistic_info_u64, reserved, 512);
ASCEND_DCMI_SIZE(dcmi_hccs_bandwidth_info, 280);
ASCEND_DCMI_AT(dcmi_hccs_bandwidth_info, profiling_time, 0);
ASCEND_DCMI_AT(dcmi_hccs_bandwidth_info, total_txbw, 8);
ASCEND_DCMI_AT(dcmi_hccs_bandwidth_info, total_rxbw, 16);
ASCEND_DCMI_AT(dcmi_hccs_bandwidth_info, tx_bandwidth, 24);
ASCEND_DCMI_AT(dcmi_hccs_bandwidth_info, rx_bandwidth, 152);
ASCEND_DCMI_SIZE(dcmi_sio_crc_err_statistics_info, 12);
ASCEND_DCMI_AT(dcmi_sio_crc_err_statistics_info, tx_error_count, 0);
ASCEND_DCMI_AT(dcmi_sio_crc_err_statistics_info, rx_error_count, 2);
ASCEND_DCMI_AT(dcmi_sio_crc_err_statistics_info, reserved, 4);
#undef ASCEND_DCMI_AT
#undef ASCEND_DCMI_SIZE
#undef ASCEND_DCMI_ENUM
#undef ASCEND_DCMI_ASSERT

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ASCEND_DRA_VNPU_DCMI_ABI_H_
