# Writes a C++ source with the text of a file as a function:
#   cmake -DINPUT=file.yaml -DOUTPUT=file.cc -DHEADER=vnpu/x.h -DFUNCTION=ns::Name -P EmbedText.cmake
file(READ "${INPUT}" text)
if(text MATCHES "\\)EMBEDDED\"")
  message(FATAL_ERROR "${INPUT} contains the end mark of the string literal it is to become")
endif()
file(WRITE "${OUTPUT}" "#include \"${HEADER}\"

absl::string_view ${FUNCTION}() { return R\"EMBEDDED(${text})EMBEDDED\"; }
")
