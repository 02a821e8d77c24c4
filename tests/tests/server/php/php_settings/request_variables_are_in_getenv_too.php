<?php
echo json_encode([getenv('REQUEST_METHOD'), getenv('QUERY_STRING'), getenv('HTTP_X_A'), getenv('SCRIPT_NAME')]);
