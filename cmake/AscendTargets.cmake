# Every program that carries the label `concurrency`, and every generated source.
add_custom_target(concurrency_tests)
add_custom_target(generated_sources)

# ascend_add_library(NAME <name> [TESTONLY] SOURCES ... HEADERS ... DEPS ... PRIVATE_DEPS ...)
#   A static library `ascend_<name>` with the alias `ascend::<name>`. HEADERS are its public
#   interface; includes are written from the root of the source tree.
function(ascend_add_library)
  cmake_parse_arguments(ARG "TESTONLY" "NAME" "SOURCES;HEADERS;DEPS;PRIVATE_DEPS" ${ARGN})
  if(ARG_TESTONLY AND NOT ASCEND_DRA_BUILD_TESTS)
    return()
  endif()
  set(target ascend_${ARG_NAME})
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(${target} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
    target_link_libraries(${target} INTERFACE ${ARG_DEPS})
  endif()
  add_library(ascend::${ARG_NAME} ALIAS ${target})
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${ARG_HEADERS})
  target_include_directories(${target} ${scope} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
endfunction()

# ascend_add_executable(NAME <program> [COMPONENT <component>] SOURCES ... DEPS ...): a program that is
#   installed.
function(ascend_add_executable)
  cmake_parse_arguments(ARG "" "NAME;COMPONENT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_COMPONENT)
    set(ARG_COMPONENT driver)
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS})
  target_compile_definitions(${ARG_NAME} PRIVATE ASCEND_DRA_VERSION="${PROJECT_VERSION}")
  install(TARGETS ${ARG_NAME} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    COMPONENT ${ARG_COMPONENT})
endfunction()

# ascend_add_test(NAME <test> SOURCES ... DEPS ... [LABELS ...] [TIMEOUT seconds])
#   One GoogleTest program, one CTest entry. Label `concurrency` marks what also runs under
#   ThreadSanitizer, `grpc` what needs the suppressions for an uninstrumented gRPC there.
function(ascend_add_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ASCEND_DRA_BUILD_TESTS)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  if(ASCEND_DRA_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 6")  # instrumented code is that much slower
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} GTest::gmock_main)
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME})
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  if("concurrency" IN_LIST ARG_LABELS)
    add_dependencies(concurrency_tests ${ARG_NAME})
  endif()
  if(ASCEND_DRA_SANITIZE MATCHES "address" AND "grpc" IN_LIST ARG_LABELS)
    set_tests_properties(${ARG_NAME} PROPERTIES ENVIRONMENT
      "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp")
  endif()
  if(ASCEND_DRA_SANITIZE STREQUAL "thread")
    # System libraries are not instrumented. Suppressions only where gRPC is in the way: they could
    # hide a race of ours elsewhere.
    set(options "ignore_noninstrumented_modules=1:halt_on_error=1")
    if("grpc" IN_LIST ARG_LABELS)
      string(APPEND options ":suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp")
    endif()
    set_tests_properties(${ARG_NAME} PROPERTIES ENVIRONMENT "TSAN_OPTIONS=${options}")
  endif()
endfunction()

# ascend_add_protos(NAME <name> PROTOS ...): messages and gRPC stubs of .proto files that lie in
# the calling directory. Generated headers are included by file name ("agent.pb.h").
function(ascend_add_protos)
  cmake_parse_arguments(ARG "" "NAME" "PROTOS" ${ARGN})
  set(target ascend_${ARG_NAME})
  add_library(${target} STATIC ${ARG_PROTOS})
  add_library(ascend::${ARG_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} SYSTEM PUBLIC "${CMAKE_CURRENT_BINARY_DIR}")
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf gRPC::grpc++_unsecure)
  target_compile_options(${target} PRIVATE -w)  # generated code
  protobuf_generate(TARGET ${target} LANGUAGE cpp)
  protobuf_generate(TARGET ${target} LANGUAGE grpc
    PLUGIN "protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>"
    GENERATE_EXTENSIONS .grpc.pb.h .grpc.pb.cc)
  # Building the library is the simplest way to have its headers made.
  add_dependencies(generated_sources ${target})
endfunction()

# ascend_install_package(NAME <package> COMPONENT <component> TARGETS <target>... DEPENDENCIES <package>...)
#   Installs libraries with their public headers so that find_package(<package>) finds them as
#   ascend::<name>. Headers go below include/ascend, where "cdi/spec.h" means the same as here.
function(ascend_install_package)
  cmake_parse_arguments(ARG "" "NAME;COMPONENT" "TARGETS;DEPENDENCIES" ${ARGN})
  include(CMakePackageConfigHelpers)
  foreach(target ${ARG_TARGETS})
    string(REPLACE "ascend_" "" name ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  endforeach()
  install(TARGETS ${ARG_TARGETS} EXPORT ${ARG_NAME}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${ARG_COMPONENT}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ascend COMPONENT ${ARG_COMPONENT})
  set(directory ${CMAKE_INSTALL_LIBDIR}/cmake/${ARG_NAME})
  install(EXPORT ${ARG_NAME} NAMESPACE ascend:: FILE ${ARG_NAME}Targets.cmake
    DESTINATION ${directory} COMPONENT ${ARG_COMPONENT})
  set(config "include(CMakeFindDependencyMacro)\n")
  foreach(dependency ${ARG_DEPENDENCIES})
    string(APPEND config "find_dependency(${dependency})\n")
  endforeach()
  string(APPEND config "include(\"\${CMAKE_CURRENT_LIST_DIR}/${ARG_NAME}Targets.cmake\")\n")
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}Config.cmake" "${config}")
  write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}ConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}Config.cmake"
    "${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}ConfigVersion.cmake"
    DESTINATION ${directory} COMPONENT ${ARG_COMPONENT})
endfunction()
