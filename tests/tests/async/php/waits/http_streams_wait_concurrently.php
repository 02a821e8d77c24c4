<?php
echo file_get_contents("http://127.0.0.1:PORT/$m"), implode(preg_grep('/X-Path/', $http_response_header));
