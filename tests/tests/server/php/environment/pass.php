<?php
echo json_encode([getenv('OF_THE_POOL'), $_SERVER], JSON_INVALID_UTF8_SUBSTITUTE);
